"""Quota: limits in force, and whether a change fits. Usage is summed from the ledger under the project's lock."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, NamedTuple

from nova import errors
from nova.conductor.quota.limits import LimitsRead
from nova.conductor.quota.projects import check_project
from nova.db import keypairs
from nova.db.quota import ledger, quotas
from nova.db.sql.engine import Connection
from nova.model.quota.quotas import (
    DEFAULT_CLASS,
    NETWORK_RESOURCES,
    RESOURCES,
    UNLIMITED,
    QuotaClass,
    QuotaSet,
    QuotaUpdate,
)

if TYPE_CHECKING:
    from nova.conductor.engine.deps import Deps


class Owner(NamedTuple):
    """The owner of limits. ``known``: the limits from another store; None if they are in nova's database."""

    project_id: str
    user_id: str | None
    known: LimitsRead | None = None


def owner(deps: Deps, project_id: str | None, user_id: str | None) -> Owner:
    """Return the owner with its limits. Call it before a transaction: it may ask Keystone. Raises Unavailable."""
    return Owner(project_id or "", user_id, deps.quotas.known(project_id or ""))


def effective(deps: Deps, tx: Connection, whose: Owner, also: Iterable[str] = ()
              ) -> tuple[dict[str, int], dict[str, int]]:
    """Return (limits of the project, limits of the user in it) of every resource and of those in ``also``. At most one
    statement."""
    if whose.known is not None:
        elsewhere = whose.known.limits(also)
        return elsewhere, elsewhere
    written = quotas.limits(tx, whose.project_id, whose.user_id)
    whole = {**deps.settings.quota_defaults, **written.defaults, **written.project}
    return whole, {**whole, **written.user}


def fits(limit: int, used: int, wanted: int) -> bool:
    """True if ``wanted`` more fit. -1 means no limit; requests for zero always fit, even above the limit."""
    return limit == UNLIMITED or wanted <= 0 or used + wanted <= limit


def remaining(limit: int, used: int, each: int) -> int | None:
    """Return how many more of size ``each`` fit; None for no limit."""
    return None if limit == UNLIMITED or each <= 0 else max(0, (limit - used) // each)


def check(limits: Mapping[str, int], used: Mapping[str, int], wanted: Mapping[str, int]) -> None:
    """Check that all wanted amounts fit. Raises OverQuota, naming every resource that does not fit."""
    over = [name for name in sorted(wanted) if not fits(limits.get(name, UNLIMITED), used.get(name, 0), wanted[name])]
    if over:
        def listed(values: Mapping[str, int]) -> str:
            return ", ".join(str(values.get(name, 0)) for name in over)
        raise errors.quota.Exceeded(over=", ".join(over), requested=listed(wanted), used=listed(used),
                                    limit=listed(limits))


class Quotas:
    """The quota calls of ConductorRPC."""

    def __init__(self, deps: Deps) -> None:
        self.deps = deps

    def get_quotas(self, project_id: str, user_id: str | None, usage: bool) -> QuotaSet:
        """Return limits of a project or of a user in it (``user_id``), with usage if asked. Raises service.NotAProject;
        quota.LimitsAway if the limits are in Keystone, which does not answer."""
        check_project(self.deps, project_id)
        return self._shown(project_id, user_id, usage)

    def _shown(self, project_id: str, user_id: str | None, usage: bool) -> QuotaSet:
        whose = owner(self.deps, project_id, user_id)
        with self.deps.api.reading() as tx:
            project, user = effective(self.deps, tx, whose)
            limits = user if user_id else project
            in_use: dict[str, int] = {}
            if usage:
                in_use = {**dict.fromkeys((*RESOURCES, *NETWORK_RESOURCES), 0), **self._used(tx, project_id, user_id)}
        if usage:
            in_use |= self._used_of_networks(project_id)
        return QuotaSet(project_id=project_id, user_id=user_id, limits=limits, in_use=in_use)

    def _used(self, tx: Connection, project_id: str, user_id: str | None) -> dict[str, int]:
        """Return the usage of a project, or of one user in it, in two statements."""
        servers = self.deps.quotas.usage(tx, project_id, user_id)["user" if user_id else "project"]
        return {**servers, **quotas.used(tx, project_id, user_id)}

    def _used_of_networks(self, project_id: str) -> dict[str, int]:
        """Return the project's usage of nova-network's resources (users have no share of it); none with Neutron."""
        count = getattr(getattr(self.deps.networking, "networks", None), "used", None)
        return dict(count(project_id)) if count else {}

    def get_default_quotas(self) -> QuotaSet:
        """Return the quotas of the class ``default``."""
        return QuotaSet(limits=self.get_quota_class(DEFAULT_CLASS).limits)

    def _check_changeable(self) -> None:
        if self.deps.quotas.unchangeable:
            raise errors.quota.KeptElsewhere(reason=self.deps.quotas.unchangeable)

    def update_quotas(self, update: QuotaUpdate) -> QuotaSet:
        """Set the named limits of a project or a user in it, and return all of them. -1: no limit. Raises
        quota.KeptElsewhere, quota.BelowUse, quota.AboveProject; service.NotAProject."""
        self._check_changeable()
        check_project(self.deps, update.project_id)

        def write(tx: Connection) -> None:
            ledger.lock_owner(tx, update.project_id)
            project, _user = effective(self.deps, tx, Owner(update.project_id, None))
            used = self._used(tx, update.project_id, update.user_id)
            for name, limit in update.limits.items():
                self._check(name, limit, used.get(name, 0), project.get(name, UNLIMITED), update)
            quotas.write(tx, update.project_id, update.user_id, update.limits)
        self.deps.api.transact(write)
        return self._shown(update.project_id, update.user_id, False)

    def get_quota_class(self, class_name: str) -> QuotaClass:
        """Return a class's limits; a class without rows has the configured defaults."""
        elsewhere = self.deps.quotas.known("")  # without a project: the limits registered for all
        if elsewhere is not None:
            return QuotaClass(class_name=class_name, limits=elsewhere.limits())
        with self.deps.api.reading() as tx:
            own = quotas.class_limits(tx, class_name)
        return QuotaClass(class_name=class_name, limits={**self.deps.settings.quota_defaults, **own})

    def update_quota_class(self, update: QuotaClass) -> QuotaClass:
        """Set limits of a class, without a check of the usage. Raises quota.KeptElsewhere."""
        self._check_changeable()

        def write(tx: Connection) -> None:
            ledger.lock_owner(tx, f"class:{update.class_name}"[:255])  # serializes updates of one class
            quotas.write_class(tx, update.class_name, update.limits)
        self.deps.api.transact(write)
        return self.get_quota_class(update.class_name)

    @staticmethod
    def _check(name: str, limit: int, used: int, project_limit: int, update: QuotaUpdate) -> None:
        if not update.force and limit != UNLIMITED and limit < used:
            raise errors.quota.BelowUse(limit=limit, resource=name, used=used)
        if update.user_id and project_limit != UNLIMITED and (limit == UNLIMITED or limit > project_limit):
            raise errors.quota.AboveProject(limit=limit, resource=name, project_limit=project_limit)

    def delete_quotas(self, project_id: str, user_id: str | None) -> None:
        """Delete the limits of a project, or of one user in it (``user_id``). No error if there are none. Raises
        quota.KeptElsewhere."""
        self._check_changeable()
        self.deps.api.transact(lambda tx: quotas.delete(tx, project_id, user_id))


def check_keypair(deps: Deps, tx: Connection, whose: Owner, user_id: str, name: str) -> None:
    """Check under the user's lock that the name is free and that one more key pair fits. Raises Conflict (checked
    first), OverQuota."""
    ledger.lock_owner(tx, f"user:{user_id}")
    _project, limits = effective(deps, tx, whose)
    count, taken = keypairs.count(tx, user_id, name)
    if taken:
        raise errors.server.KeypairTaken(name=name)
    if not fits(limits.get("key_pairs", UNLIMITED), count, 1):
        raise errors.quota.TooMany("Quota exceeded, too many key pairs.")


__all__ = ["Owner", "Quotas", "check", "check_keypair", "effective", "fits", "owner", "remaining"]
