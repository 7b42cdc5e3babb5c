"""Stores of limits (``[quota]driver``): nova's database, none, or Keystone; and the resources that each counts for a
server.

Keystone is asked before a transaction: no lock ever waits for it. A limit that cannot be read is a 503; resources never
become unlimited because Keystone is down.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple, Protocol

from nova import errors, failures
from nova.clients.keystone import Keystone
from nova.db.quota import class_usage, ledger
from nova.db.sql.engine import Connection
from nova.model.flavor.flavors import Flavor
from nova.model.quota.counting import classes
from nova.model.quota.quotas import UNLIMITED

CACHED_S = 3.0  # seconds until a changed limit applies to new requests
KEPT = 1000  # projects with cached limits


class LimitsRead(Protocol):
    """A project's limits, read from another store."""

    def limits(self, also: Iterable[str] = ()) -> dict[str, int]:
        """Return resource -> limit, for all resources that are always counted, and for ``also``."""
        ...


class QuotaLimits(Protocol):
    """Interface of a ``[quota]driver``."""

    unchangeable: str  # the reason why limits cannot be changed here; empty if they can

    def known(self, project_id: str) -> LimitsRead | None:
        """Read a project's limits, outside any transaction; None if they are in nova's database. Raises Unavailable."""
        ...

    def counted(self, flavor: Flavor, image: Mapping[str, str]) -> dict[str, int]:
        """Return the resources that one server of this flavor and image (its properties) counts."""
        ...

    def usage(self, tx: Connection, project_id: str, user_id: str | None) -> dict[str, dict[str, int]]:
        """Return the servers' current usage, of the project and (key "user") of one user in it."""
        ...


class Written:
    """Limits in nova's database: a project's, a user's in it, the default class's, and the configured defaults."""

    unchangeable = ""

    def known(self, project_id: str) -> LimitsRead | None:
        return None

    def counted(self, flavor: Flavor, image: Mapping[str, str]) -> dict[str, int]:
        return {"instances": 1, "cores": flavor.vcpus, "ram": flavor.memory_mb}

    def usage(self, tx: Connection, project_id: str, user_id: str | None) -> dict[str, dict[str, int]]:
        return ledger.usage(tx, project_id, user_id)


class _NoLimits:
    def limits(self, also: Iterable[str] = ()) -> dict[str, int]:
        return {}


class Unlimited(Written):
    """Absence of limits: a resource without a limit is unlimited."""

    unchangeable = "This cloud has no limits: [quota]driver is nova.quota.NoopQuotaDriver."

    def known(self, project_id: str) -> LimitsRead | None:
        return _NoLimits()


#: Registered names of limits -> their names in the Compute API.
NAMES = {"servers": "instances", "class:VCPU": "cores", "class:MEMORY_MB": "ram",
         "server_metadata_items": "metadata_items", "server_injected_files": "injected_files",
         "server_injected_file_content_bytes": "injected_file_content_bytes",
         "server_injected_file_path_bytes": "injected_file_path_bytes", "server_key_pairs": "key_pairs",
         "server_groups": "server_groups", "server_group_members": "server_group_members"}


class Missing(NamedTuple):
    """The limit of a resource without a registered limit (``[quota]unified_limits_resource_strategy``, ``_list``)."""

    strategy: str = "require"
    resources: frozenset[str] = frozenset({"servers"})

    def limit(self, name: str) -> int:
        """Return 0, or -1 for no limit: ``require`` gives listed resources 0, ``ignore`` the resources that are not
        listed."""
        listed = name in self.resources
        return 0 if listed == (self.strategy == "require") else UNLIMITED


MISSING = Missing()


class _InKeystone(NamedTuple):
    registered: Mapping[str, int]
    own: Mapping[str, int]
    missing: Missing

    def limits(self, also: Iterable[str] = ()) -> dict[str, int]:
        """Return the limits under both names. A project's own limit counts only if a limit is registered, which
        Keystone enforces."""
        found = {name: self.own.get(name, self.registered.get(name, self.missing.limit(name)))
                 for name in {*NAMES, *self.registered, *also}}
        return {**found, **{ours: found[name] for name, ours in NAMES.items()}}


class Unified:
    """Limits in Keystone: a project's own override the registered ones. Users have no limits of their own there."""

    unchangeable = ("Limits of this cloud are kept in Keystone: use 'openstack limit' and 'openstack registered "
                    "limit'.")

    def __init__(self, keystone: Keystone, missing: Missing = MISSING, clock: Callable[[], float] = time.monotonic
                 ) -> None:
        self._keystone, self._missing, self._clock = keystone, missing, clock
        self._cache: dict[str, tuple[float, _InKeystone]] = {}

    def known(self, project_id: str) -> LimitsRead | None:
        now = self._clock()
        kept = self._cache.get(project_id)
        if kept is not None and now - kept[0] < CACHED_S:
            return kept[1]
        with failures.translated(errors.NovaError, lambda error: errors.quota.LimitsAway(reason=error.message)):
            found = self._keystone.limits(project_id)
        fresh = _InKeystone(found.registered, found.own, self._missing)
        if len(self._cache) >= KEPT:
            self._cache.clear()
        self._cache[project_id] = now, fresh
        return fresh

    def counted(self, flavor: Flavor, image: Mapping[str, str]) -> dict[str, int]:
        return {"servers": 1, **{f"class:{name}": amount for name, amount in classes(flavor, image).items()}}

    def usage(self, tx: Connection, project_id: str, user_id: str | None) -> dict[str, dict[str, int]]:
        used = class_usage.usage(tx, project_id)
        used |= {ours: used.get(name, 0) for name, ours in NAMES.items() if name in ("servers", "class:VCPU",
                                                                                      "class:MEMORY_MB")}
        return {"project": used, "user": used}


__all__ = ["LimitsRead", "QuotaLimits", "Missing", "Unified", "Unlimited", "Written"]
