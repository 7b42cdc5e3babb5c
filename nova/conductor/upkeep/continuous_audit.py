"""Continuous audit of allocations against servers: a page of servers each turn, by one conductor at a time.

A difference becomes a row of ``strangers``, shown to operators by ``nova-manage orphan list``. The row ends when the
difference is gone. Only two cases are corrected here. Allocations of a server whose ledger row is closed are released,
because the closed row proves that the server was deleted. A live server without a ledger row gets one.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence

from nova.conductor.engine.deps import Deps
from nova.conductor.upkeep import allocation_audit
from nova.conductor.upkeep.allocation_audit import Stores
from nova.db.placement import audits
from nova.db.schema import api_rebuild
from nova.db.upkeep import orphans
from nova.db.upkeep.orphans import OrphanFacts, OrphanKey
from nova.model.guest.orphans import OrphanKind
from nova.model.placement.audits import ORPHAN, Difference

LOG = logging.getLogger(__name__)

WALK, PAGE = "allocations", 200
TURN_S = 50  # shorter than the time between two turns of a process


def run(deps: Deps) -> int:
    """Run one turn and return the number of differences that remain open."""
    after = deps.cell.transact(lambda tx: orphans.take_turn(tx, WALK, TURN_S))
    if after is None:
        return 0
    stores = allocation_audit.stores_of(deps)
    uuids, last = allocation_audit.page(stores, after, PAGE)
    _count_unknown(deps, uuids)
    found = [one for uuid in allocation_audit.suspects(stores, uuids)
             for one in allocation_audit.audit(stores, uuid).differences]
    among = orphans.of_servers(OrphanKind.ALLOCATION, after, last)
    proven = _proven(deps, found)
    new = deps.cell.transact(lambda tx: orphans.write(tx, among, _rows(found)))
    if proven:
        deps.cell.transact(lambda tx: orphans.order(tx, _rows(proven)))  # recorded before the release
        _give_back(deps, stores, proven)
        found = [one for one in found if one not in proven]
        deps.cell.transact(lambda tx: orphans.write(tx, among, _rows(found)))
    for one in found:
        if new & _rows([one]).keys():
            LOG.warning("allocations are inconsistent: %s. See nova-manage orphan list", one.words(),
                        extra={"server": one.server})
    deps.cell.transact(lambda tx: orphans.go_on(tx, WALK, last))
    return len(found)


def _count_unknown(deps: Deps, uuids: Sequence[str]) -> None:
    """Create missing ledger rows of live servers. A server is in the ledger before it is in the cell. If its row is
    missing, an import was interrupted or the api database is older, and no quota counts the server. Its record has all
    values of its ledger row."""
    with deps.cell.reading() as cell, deps.api.reading() as tx:
        lost = api_rebuild.without_ledger_row(tx, api_rebuild.proofs(cell, uuids))
    if lost:
        deps.api.transact(lambda tx: api_rebuild.open_rows(tx, lost, deps.cell_uuid))
    for row in lost:
        LOG.warning("created the server's missing ledger row; quota counts it now", extra={"server": row.uuid})


def _rows(found: Iterable[Difference]) -> dict[OrphanKey, OrphanFacts]:
    return {OrphanKey(one.place.host, OrphanKind.ALLOCATION, allocation_audit.name_of(one.place)):
            OrphanFacts(one.server, one.words()) for one in found}


def _proven(deps: Deps, found: Sequence[Difference]) -> list[Difference]:
    orphans = [one for one in found if one.kind == ORPHAN]
    if not orphans:
        return []
    with deps.api.reading() as tx:
        closed = audits.closed(tx, [one.server for one in orphans])
    return [one for one in orphans if one.server in closed]


def _give_back(deps: Deps, stores: Stores, proven: Sequence[Difference]) -> None:
    """Release these allocations. Each is checked again under its ledger row's lock: an operator may have imported the
    guest meanwhile."""
    for uuid in sorted({one.server for one in proven}):
        allocation_audit.audit(stores, uuid, (ORPHAN,))
    for one in proven:
        LOG.warning("released the allocation of a deleted server: %s", one.words(), extra={"server": one.server})
    for host in sorted({one.place.host for one in proven}):
        deps.feed.host_changed(host)
