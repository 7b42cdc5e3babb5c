"""Where limits are kept (``[quota]driver``): in our database, nowhere, or in Keystone. And what they count of a server.

Whoever asks next door does so before a transaction: no lock ever waits for Keystone. A limit that cannot be read is
503; nothing is ever unlimited because Keystone is down.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple, Protocol

from nova import errors
from nova.db.quota import class_usage, ledger
from nova.db.sql.engine import Connection
from nova.db.sql.types import AnyColumn
from nova.model.flavor.flavors import Flavor
from nova.model.quota.counting import classes
from nova.model.quota.quotas import UNLIMITED

CACHED_S = 3.0  # a changed limit holds for every request that begins so much later
KEPT = 1000  # projects whose limits are remembered


class LimitsRead(Protocol):
    """A project's limits as they were read elsewhere."""

    def limits(self, also: Iterable[str] = ()) -> dict[str, int]:
        """Resource -> limit, of all that is counted always, and of these."""
        ...


class QuotaLimits(Protocol):
    """What ``[quota]driver`` stands for."""

    unchangeable: str  # why limits can't be written here; empty: they can

    def known(self, project_id: str) -> LimitsRead | None:
        """Outside any transaction. None: they are in our database. Unavailable."""
        ...

    def counted(self, flavor: Flavor, image: Mapping[str, str]) -> dict[str, int]:
        """What one server of this flavor and image (its properties) counts."""
        ...

    def usage(self, tx: Connection, project_id: str, user_id: str | None) -> dict[str, dict[str, int]]:
        """What servers count now, of the project and (key "user") of one user in it."""
        ...


class Written:
    """In our database: a project's own, a user's in it, the default class's, and the configured defaults."""

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
    """Nowhere: a resource without a limit is not limited."""

    unchangeable = "Nothing is limited in this cloud: [quota]driver is nova.quota.NoopQuotaDriver."

    def known(self, project_id: str) -> LimitsRead | None:
        return _NoLimits()


#: Registered names of limits -> what the Compute API calls them.
NAMES = {"servers": "instances", "class:VCPU": "cores", "class:MEMORY_MB": "ram",
         "server_metadata_items": "metadata_items", "server_injected_files": "injected_files",
         "server_injected_file_content_bytes": "injected_file_content_bytes",
         "server_injected_file_path_bytes": "injected_file_path_bytes", "server_key_pairs": "key_pairs",
         "server_groups": "server_groups", "server_group_members": "server_group_members"}


class Missing(NamedTuple):
    """What a resource has that no limit is registered for (``[quota]unified_limits_resource_strategy``, ``_list``)."""

    strategy: str = "require"
    resources: frozenset[str] = frozenset({"servers"})

    def limit(self, name: str) -> int:
        """0, or -1 for no limit: ``require`` gives those that are listed nothing, ``ignore`` those that are not."""
        listed = name in self.resources
        return 0 if listed == (self.strategy == "require") else UNLIMITED


MISSING = Missing()


class _InKeystone(NamedTuple):
    registered: Mapping[str, int]
    own: Mapping[str, int]
    missing: Missing

    def limits(self, also: Iterable[str] = ()) -> dict[str, int]:
        """By both names. A project's own limit counts only where one is registered: Keystone keeps it so."""
        found = {name: self.own.get(name, self.registered.get(name, self.missing.limit(name)))
                 for name in {*NAMES, *self.registered, *also}}
        return {**found, **{ours: found[name] for name, ours in NAMES.items()}}


class Unified:
    """In Keystone, a project's own above what is registered for all. Users have none of their own in it.

    ``keystone`` is a :class:`nova.clients.keystone.Keystone`.
    """

    unchangeable = ("Limits of this cloud are kept in Keystone: use 'openstack limit' and 'openstack registered "
                    "limit'.")

    def __init__(self, keystone: AnyColumn, missing: Missing = MISSING, clock: Callable[[], float] = time.monotonic
                 ) -> None:
        self._keystone, self._missing, self._clock = keystone, missing, clock
        self._cache: dict[str, tuple[float, _InKeystone]] = {}

    def known(self, project_id: str) -> LimitsRead | None:
        now = self._clock()
        kept = self._cache.get(project_id)
        if kept is not None and now - kept[0] < CACHED_S:
            return kept[1]
        try:
            found = self._keystone.limits(project_id)
        except errors.NovaError as error:
            raise errors.quota.LimitsAway(reason=error.message) from error
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
