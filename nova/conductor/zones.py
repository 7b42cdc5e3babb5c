"""Availability zones: the zone of a host, checks of requested zones, and updates of servers' rows.

A zone is metadata of an aggregate (api database). Its users are in the cell: services, and the zone that each server's
row shows. The two never change in one transaction, so :class:`ZoneSweep` repairs differences after a crash.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable, Sequence

from nova import errors
from nova.conductor.engine.deps import Deps
from nova.conductor.engine.operation import Op, PlacementArguments, Result
from nova.db.host import aggregates, cell_mappings, hosts, services
from nova.db.placement.claims import ProviderUsage
from nova.db.sql.engine import Connection
from nova.model.host.cells import CELL0

LOG = logging.getLogger(__name__)


def for_server(deps: Deps, op: Op, claimed: Sequence[ProviderUsage]) -> Result:
    """Return the zone of the host that a server has claimed. Returns aggregate.ZoneHostMoved if the server asked for
    another zone: the host was moved since the scheduler chose it."""
    made = next((one.zone for one in claimed if one.provider_id == op.progress.provider_id), None)
    zone = made or deps.settings.default_availability_zone
    wanted = op.server.pinned_availability_zone
    if wanted and wanted != zone and not op.asked(PlacementArguments).forced:
        return errors.aggregate.ZoneHostMoved(zone=zone, wanted=wanted)
    return {"zone": zone}


def of_hosts(deps: Deps, hosts: Collection[str] | None = None) -> dict[str, str]:
    """Return host -> zone, for hosts outside the default zone."""
    with deps.api.reading() as tx:
        return aggregates.zones(tx, hosts)


def check(deps: Deps, zone: str | None) -> None:
    """Check that an enabled compute host is in the zone; None passes. Raises aggregate.ZoneNotAvailable; Unavailable if
    a cell that does not answer may have one."""
    if zone is None:
        return
    with deps.api.reading() as tx:
        default = zone == deps.settings.default_availability_zone
        others = {host for host, other in aggregates.zones(tx).items() if other != zone} if default else set[str]()
        inside = set[str]() if default else set(aggregates.hosts_in_zone(tx, zone))

    def has_one(tx: Connection) -> bool:
        enabled = services.enabled_hosts(tx)
        return bool(enabled - others if default else enabled & inside)
    if not deps.cells.any(has_one):
        raise errors.aggregate.ZoneNotAvailable(zone=zone)


def follow(deps: Deps, changed: Iterable[str] | None = None) -> None:
    """Write the hosts' zones into their servers' rows, for these hosts (None for all of the cell). Repeating it is
    harmless."""
    default = deps.settings.default_availability_zone
    with deps.api.reading() as tx:
        placed = aggregates.zones(tx, None if changed is None else sorted(set(changed)))
    moved: dict[str, list[str]] = {}
    if changed is not None:
        for host in changed:
            moved.setdefault(placed.get(host, default), []).append(host)
    else:
        with deps.cell.reading() as tx:
            for host, zone in hosts.zones_shown(tx):
                if zone != (right := placed.get(host, default)):
                    moved.setdefault(right, []).append(host)
    if moved:
        deps.cell.transact(lambda tx: _write(tx, moved))


def _write(tx: Connection, moved: dict[str, list[str]]) -> None:
    for zone, names in moved.items():
        hosts.write_zone(tx, names, zone)


class ZoneSweep:
    """Sweep that repeats :func:`follow` after each change of aggregates. A conductor may have died before it updated
    the servers' rows, or a create may have read the zone just before. Costs one read if the aggregates are
    unchanged."""

    def __init__(self) -> None:
        self._seen = self._done = 0  # stamps: of the last turn, and of the last completed state

    def __call__(self, deps: Deps) -> None:
        with deps.api.reading() as tx:
            stamp = aggregates.version(tx)
        if stamp == self._done:
            return
        follow(deps)
        if stamp == self._seen:  # unchanged for a whole turn: pending creates have ended
            self._done = stamp
        self._seen = stamp


def _all_compute_hosts(deps: Deps) -> set[str]:
    """Return the compute hosts of all recorded cells. Raises Unavailable for a cell that does not answer, or that this
    conductor does not serve: its record is new, or cannot be decrypted here."""
    with deps.api.reading() as tx:
        recorded = cell_mappings.by_uuid(tx).keys() - {CELL0}
    if unserved := recorded - {cell.cell_uuid for cell in deps.cells.all()}:
        raise errors.cell.NotServed(cell=min(unserved))
    found = set[str]()
    for cell in deps.cells.all():
        with cell.cell.reading() as tx:
            found |= services.compute_hosts(tx)
    return found


class ForgottenHosts:
    """Sweep of providers and aggregate members of hosts whose compute service was removed: left by a crash in between.

    A host is removed if two turns in a row find it so, and its providers only if they are unchanged since the first
    turn. A host that registers again meanwhile creates new ones, or changes them.
    """

    def __init__(self) -> None:
        self._before: dict[int, int] = {}  # provider -> generation, as of the previous turn
        self._members: set[str] = set()

    def __call__(self, deps: Deps) -> None:
        with deps.api.reading() as tx:
            providers = hosts.providers_of_hosts(tx)
            members = aggregates.members(tx)
        alive = _all_compute_hosts(deps)  # read after the others, so that no new registration is missed
        orphans = {row.id: row.generation for row in providers if row.host not in alive}
        lost = {key: generation for key, generation in orphans.items() if self._before.get(key) == generation}
        left = members - alive
        gone = left & self._members
        self._before, self._members = orphans, left
        if lost:
            deps.api.transact(lambda tx: hosts.drop_providers(tx, lost))
            LOG.warning("removed %d resource providers of hosts whose compute service is deleted", len(lost))
        if gone:
            deps.api.transact(lambda tx: aggregates.forget_hosts(tx, gone))
            LOG.warning("removed hosts whose compute service is deleted from their aggregates: %s",
                        ", ".join(sorted(gone)))
            deps.feed.aggregates_changed()
