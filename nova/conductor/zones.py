"""Availability zones: which a host is in, whether one that is asked for exists, and servers that follow their hosts.

A zone is metadata of an aggregate (api database); what uses it is in the cell: its services, and the zone that each
server's row shows. The two never change in one transaction, so :class:`ZoneSweep` repairs what a crash leaves between.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable, Sequence

from nova import errors
from nova.conductor.engine.deps import Deps
from nova.conductor.engine.operation import Op, PlacementArguments, Result
from nova.db.host import aggregates, hosts, services
from nova.db.placement.claims import ProviderUsage
from nova.db.sql.engine import Connection

LOG = logging.getLogger(__name__)


def for_server(deps: Deps, op: Op, claimed: Sequence[ProviderUsage]) -> Result:
    """The zone that a server gets with the host of its claim; aggregate.ZoneHostMoved when it asked for another: the
    host was moved since the scheduler chose it."""
    made = next((one.zone for one in claimed if one.provider_id == op.progress.provider_id), None)
    zone = made or deps.settings.default_availability_zone
    wanted = op.server.pinned_availability_zone
    if wanted and wanted != zone and not op.asked(PlacementArguments).forced:
        return errors.aggregate.ZoneHostMoved(zone=zone, wanted=wanted)
    return {"zone": zone}


def of_hosts(deps: Deps, hosts: Collection[str] | None = None) -> dict[str, str]:
    """host -> zone, of those that are not in the default one."""
    with deps.api.reading() as tx:
        return aggregates.zones(tx, hosts)


def check(deps: Deps, zone: str | None) -> None:
    """aggregate.ZoneNotAvailable unless an enabled compute host is in the zone. None asks for none."""
    if zone is None:
        return
    with deps.cell.reading() as tx:
        enabled = services.enabled_hosts(tx)
    with deps.api.reading() as tx:
        if zone == deps.settings.default_availability_zone:
            placed = aggregates.zones(tx)
            known = any(placed.get(host, zone) == zone for host in enabled)
        else:
            known = not enabled.isdisjoint(aggregates.hosts_in_zone(tx, zone))
    if not known:
        raise errors.aggregate.ZoneNotAvailable(zone=zone)


def follow(deps: Deps, changed: Iterable[str] | None = None) -> None:
    """Let servers' rows show the zone their hosts are in, of these hosts (all, for None). Repeating it is harmless."""
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
    """After each change of aggregates, once more: a conductor may have died before it told the servers' rows, and a
    create may have read the zone just before. Nothing to do costs one read."""

    def __init__(self) -> None:
        self._seen = self._done = 0  # stamps: of the last turn, and the one for which all is right

    def __call__(self, deps: Deps) -> None:
        with deps.api.reading() as tx:
            stamp = aggregates.version(tx)
        if stamp == self._done:
            return
        follow(deps)
        if stamp == self._seen:  # quiet for a whole turn: what was under way has ended
            self._done = stamp
        self._seen = stamp


class ForgottenHosts:
    """Providers and aggregate members of hosts whose compute service was taken out: left by a crash in between.

    A host is forgotten when two turns in a row find it so, and its providers only as they were the first time: a host
    that registers again meanwhile makes new ones, or changes them.
    """

    def __init__(self) -> None:
        self._before: dict[int, int] = {}  # provider -> generation, of the turn before
        self._members: set[str] = set()

    def __call__(self, deps: Deps) -> None:
        with deps.api.reading() as tx:
            providers = hosts.providers_of_hosts(tx)
            members = aggregates.members(tx)
        with deps.cell.reading() as tx:  # after them: what registers first cannot be missed
            alive = services.compute_hosts(tx)
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
            LOG.warning("took hosts whose compute service is deleted out of their aggregates: %s",
                        ", ".join(sorted(gone)))
            deps.feed.aggregates_changed()
