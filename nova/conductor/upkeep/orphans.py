"""Orphans: resources on hosts that no record explains. Hosts report them, operators order removals, and the records
decide.

A host reports everything that is not in its own list. Whether a record explains it is checked here on each request,
because records change and reports do not. A removal is ordered by an operator, and checked again when the host is told.
"""

from __future__ import annotations

import contextlib
import logging
import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from nova import errors
from nova.conductor.engine.deps import Deps
from nova.conductor.upkeep import allocation_audit
from nova.conductor.upkeep.allocation_audit import Stores
from nova.db.host import services
from nova.db.placement import audits
from nova.db.server import servers
from nova.db.upkeep import orphans
from nova.db.upkeep.orphans import OrphanFacts, OrphanKey, OrphanRow
from nova.model.base import HostName
from nova.model.guest.orphans import (
    MOST_ORPHANS,
    FoundOrphan,
    Orphan,
    OrphanKind,
    OrphanRemoval,
    OrphanReport,
)
from nova.model.host.services import ServiceQuery
from nova.model.placement.audits import TOO_MUCH
from nova.model.server.states import PowerState

LOG = logging.getLogger(__name__)

ON_HOSTS = (OrphanKind.GUEST, OrphanKind.SOURCE_COPY)
ORDER_S = 86400  # seconds for which an operator's order is valid
MOST_LISTED = 1000
NAMED = 5
NO_DOMAIN = "no domain"
UUID = re.compile("[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


class Verdict(NamedTuple):
    """The reason why no record explains an orphan. ``alive``: its server is live, on ``host``, and may use disks that
    hosts share."""

    why: str
    alive: bool = False
    host: str = ""


class Orphans:
    """The calls of both contracts about orphans."""

    def __init__(self, deps: Deps) -> None:
        self.deps = deps

    def _stores(self) -> Stores:
        return allocation_audit.stores_of(self.deps)

    # -- hosts

    def report(self, host: HostName, report: OrphanReport) -> tuple[OrphanRemoval, ...]:
        """Store the orphans that the host found, and return the orphans that it may remove now. Raises
        orphan.BadReport."""
        _check(host, report.found)
        found = {OrphanKey(host, one.kind, one.server_uuid): OrphanFacts(one.server_uuid, _what(one), one.epoch)
                 for one in report.found}
        among = orphans.of_host(host, ON_HOSTS)
        new = self.deps.cell.transact(lambda tx: orphans.write(tx, among, found))
        self._tell(host, new, report.more)
        with self.deps.cell.reading() as tx:
            due = orphans.ordered(tx, host, ON_HOSTS, ORDER_S)
        audited = verdicts(self.deps, due)
        return tuple(OrphanRemoval(kind=OrphanKind(row.kind), server_uuid=row.server_uuid, epoch=row.epoch,
                                   keep_disks=audited[row.id].alive)
                     for row in due if row.id in audited and not self._hindrance(row, audited[row.id]))

    def _hindrance(self, row: OrphanRow, verdict: Verdict) -> str:
        """Return the reason to keep an unexplained orphan; empty if it may be removed. A guest of a live server may be
        the only copy, for example after a restore of older databases. So the server's own host must confirm that it has
        the guest."""
        if not verdict.alive:
            return ""
        if row.kind == OrphanKind.GUEST.value and row.what == NO_DOMAIN:
            return f"only files are left there, and its server, which is on {verdict.host or 'no host'}, may use them"
        if not verdict.host:
            return "its server is live and on no host: this may be its only copy"
        try:
            self.deps.compute.device_places(verdict.host, row.server_uuid)
        except errors.NovaError as error:
            return f"{verdict.host} does not confirm having the guest: this may be the only copy ({error.message})"
        return ""

    def _tell(self, host: str, new: set[OrphanKey], more: int) -> None:
        if not new:
            return
        with self.deps.cell.reading() as tx:
            rows = [row for row in orphans.open_among(tx, orphans.of_host(host, ON_HOSTS)) if _key(row) in new]
        audited = verdicts(self.deps, rows)
        named = [f"{row.kind} {row.server_uuid} ({audited[row.id].why})" for row in rows if row.id in audited]
        if named:
            LOG.warning("host %s reports %d orphans; leaving them unchanged: %s%s. See nova-manage orphan list",
                        host, len(named) + more, ", ".join(named[:NAMED]),
                        ", ..." if len(named) > NAMED else "")

    # -- operators

    def list_strangers(self, with_ended: bool) -> tuple[Orphan, ...]:
        """Return at most a thousand orphans, in six statements: the oldest open ones, or the newest of all. Orphans
        that a record explains by now are left out."""
        with self.deps.cell.reading() as tx:
            rows = orphans.listed(tx, MOST_LISTED, with_ended)
        audited = verdicts(self.deps, [row for row in rows if not row.ended])
        return tuple(shown(row, audited[row.id].why if row.id in audited else row.what)
                     for row in rows if row.ended or row.id in audited)

    def look_for_strangers(self, host: str | None) -> int:
        """Ask hosts to look for orphans; see the contract. A host that is away looks when it is back."""
        with self.deps.cell.reading() as tx:
            found = services.select(tx, ServiceQuery(binary=services.COMPUTE, host=host))
        for row, _clock in found:
            with contextlib.suppress(errors.NovaError):
                self.deps.compute.look_for_strangers(row.host)
        return len(found)

    def remove_stranger(self, stranger_id: int) -> Orphan:
        """Order the removal of an orphan. Its host removes it when it is up; allocations and ports are released
        immediately. Repeating it is harmless. Raises orphan.NotFound; orphan.Known if a record explains it by now;
        orphan.NotRemovable."""
        with self.deps.cell.reading() as tx:
            row = orphans.get(tx, stranger_id)
        at_once = {OrphanKind.ALLOCATION.value: self._give_back, OrphanKind.PORT.value: self._let_go}
        if row.kind in at_once:
            return at_once[row.kind](row)
        verdict = verdicts(self.deps, [row]).get(row.id)
        if verdict is None:
            raise errors.orphan.Known(id=stranger_id, why="a record explains it")
        if hindrance := self._hindrance(row, verdict):
            raise errors.orphan.NotRemovable(id=stranger_id, why=hindrance)
        self.deps.cell.transact(lambda tx: orphans.order(tx, [_key(row)]))
        with contextlib.suppress(errors.NovaError):  # the host asks later, automatically
            self.deps.compute.look_for_strangers(row.host)
        LOG.info("removal of orphan %d (%s) ordered on host %s", row.id, row.kind, row.host,
                 extra={"server": row.server_uuid})
        return shown(row, verdict.why)

    def _give_back(self, row: OrphanRow) -> Orphan:
        audited = allocation_audit.audit(self._stores(), row.server_uuid)
        mine = [one for one in audited.differences if allocation_audit.name_of(one.place) == row.name]
        if audited.unsure or not mine:
            raise errors.orphan.Known(id=row.id, why=audited.unsure or "a record explains it")
        if mine[0].kind not in TOO_MUCH:
            raise errors.orphan.NotRemovable(id=row.id, why=mine[0].words())
        self.deps.cell.transact(lambda tx: orphans.order(tx, [_key(row)]))
        allocation_audit.audit(self._stores(), row.server_uuid, (mine[0].kind,))
        self.deps.cell.transact(lambda tx: orphans.write(tx, orphans.only(row.id), {}))
        self.deps.feed.host_changed(row.host)
        LOG.info("released orphan on operator request: %s", row.what, extra={"server": row.server_uuid})
        return shown(row, row.what)

    def _let_go(self, row: OrphanRow) -> Orphan:
        """Release a leftover port of a deleted server. Raises Unavailable if Neutron does not answer."""
        with self.deps.cell.reading() as tx:
            busy = row.server_uuid in audits.rows(tx, [row.server_uuid]).busy
            server = servers.rows_of(tx, [row.server_uuid], with_deleted=True).get(row.server_uuid)
        if busy or server is None or not server.deleted:
            raise errors.orphan.Known(id=row.id, why="it is not proven that its server was deleted")
        left_ports = self.deps.networking.left_ports
        if left_ports is None:
            raise errors.orphan.NotRemovable(id=row.id, why="this cloud does not use Neutron")
        self.deps.cell.transact(lambda tx: orphans.order(tx, [_key(row)]))
        left_ports.release(row.name, server)
        self.deps.cell.transact(lambda tx: orphans.write(tx, orphans.only(row.id), {}))
        LOG.info("released orphan on operator request: %s", row.what, extra={"server": row.server_uuid})
        return shown(row, row.what)


# -- checks against the records

def verdicts(deps: Deps, rows: Sequence[OrphanRow]) -> Mapping[int, Verdict]:
    """Return the verdicts by row ID, without the rows that a record explains. Five statements, for any number of
    rows."""
    uuids = sorted({row.server_uuid for row in rows})
    if not uuids:
        return {}
    with deps.cell.reading() as tx:
        known = audits.rows(tx, uuids)
        ever = servers.rows_of(tx, uuids, with_deleted=True)
    found = ((row.id, _verdict(row, known, set(ever))) for row in rows)
    return {key: verdict for key, verdict in found if verdict is not None}


def _verdict(row: OrphanRow, known: audits.Rows, ever: set[str]) -> Verdict | None:
    uuid = row.server_uuid
    if row.kind not in {kind.value for kind in ON_HOSTS}:
        return Verdict(row.what)  # as the audit found it
    if uuid in known.busy or known.moves.get(uuid) or row.host in known.cleanup_hosts.get(uuid, ()):
        return None
    server = known.servers.get(uuid)
    if server is None:
        return Verdict("its server was deleted" if uuid in ever else "its server has no record")
    if server.task_state is not None or (server.host == row.host and row.kind == OrphanKind.GUEST.value):
        return None
    return Verdict(f"its server is on {server.host or 'no host'}", alive=True, host=server.host or "")


def _what(one: FoundOrphan) -> str:
    return NO_DOMAIN if one.power_state is PowerState.NOSTATE else one.power_state.name.lower()


def _key(row: OrphanRow) -> OrphanKey:
    return OrphanKey(row.host, OrphanKind(row.kind), row.name)


def shown(row: OrphanRow, why: str = "") -> Orphan:
    """Return an orphan as operators see it. ``why``: the reason by the records."""
    return Orphan(id=row.id, kind=OrphanKind(row.kind), host=row.host, server_uuid=row.server_uuid,
                  why=why, first_seen_at=row.first_seen_at, ordered_at=row.ordered_at,
                  ended_at=row.ended_at, ending=row.ending)


def _check(host: str, found: Sequence[FoundOrphan]) -> None:
    """Check a report: a stolen host cannot fill the table, and can name only servers and its own resources of them."""
    reason = None
    if len(found) > MOST_ORPHANS:
        reason = f"{len(found)} orphans exceed the limit of {MOST_ORPHANS}"
    elif any(one.kind not in ON_HOSTS or not UUID.fullmatch(one.server_uuid) for one in found):
        reason = "one is not a kind that hosts report, or has an invalid server UUID"
    if reason:
        raise errors.orphan.BadReport(host=host, reason=reason)
