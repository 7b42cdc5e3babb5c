"""Audits of allocations while the cloud runs: ``nova-manage placement``.

A read of both databases finds suspects. Each suspect server is checked again under its ledger row's lock, which every
claim and release needs. A server with a running operation is left alone: its operation completes its own changes.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import NamedTuple

from nova import errors, failures
from nova.conductor.engine.deps import Cells, Deps
from nova.db.host import cell_mappings, enrolments, host_cleanups, reports
from nova.db.placement import audits
from nova.db.placement.audits import AuditedServer
from nova.db.sql.engine import Connection, Database
from nova.model.flavor.flavors import Flavor
from nova.model.host.cells import CELL
from nova.model.host.hosts import Inventory
from nova.model.placement.accepted_capacity import Capacities
from nova.model.placement.audits import MISSING, TOO_MUCH, WRONG, Amounts, Difference, KnownServer, NodeHolder, compare
from nova.model.quota.counting import classes
from nova.model.scheduling.requirements import needs_of
from nova.model.server.states import VmState
from nova.model.volumes import local

LOG = logging.getLogger(__name__)

PAGE = 500
ALL = (*TOO_MUCH, MISSING, WRONG)


class Stores(NamedTuple):
    """The databases of an audit, and the cell whose servers it is about. ``cells``: all cells; None: this process
    reaches no other cell."""

    api: Database
    cell: Database
    cell_uuid: str = CELL
    cells: Cells | None = None


def stores_of(deps: Deps) -> Stores:
    """Return the databases of a conductor's cell, with access to the other cells."""
    return Stores(deps.api, deps.cell, deps.cell_uuid, deps.cells)


class Audited(NamedTuple):
    """Differences of a server's allocations, before any correction. ``unsure``: the reason why the server cannot be
    checked now; ``failed``: the error that prevented the correction."""

    server: str
    differences: Sequence[Difference] = ()
    unsure: str = ""
    failed: errors.NovaError | None = None


def review(stores: Stores, tree: int | None = None) -> Iterator[str]:
    """Yield the servers whose allocations look wrong: of all servers, or of those with allocations in one node's
    tree."""
    seen_after = ""
    while True:
        with stores.api.reading() as tx:
            page = audits.owners(tx, seen_after, PAGE, stores.cell_uuid, tree)
        yield from suspects(stores, page)
        if len(page) < PAGE:
            break
        seen_after = page[-1]
    if tree is None:
        yield from _without_any(stores)


def _without_any(stores: Stores) -> Iterator[str]:
    """Yield the suspects among the live servers that are on a host but have no allocations."""
    after = 0
    while True:
        with stores.cell.reading() as tx:
            page = audits.placed(tx, after, PAGE)
        uuids = [uuid for _key, uuid in page]
        with stores.api.reading() as tx:
            holding = audits.held(tx, uuids)
        yield from suspects(stores, [uuid for uuid in uuids if uuid not in holding])
        if len(page) < PAGE:
            return
        after = page[-1][0]


def page(stores: Stores, after: str, limit: int) -> tuple[list[str], str | None]:
    """Return the servers behind ``after``, by UUID, that have or should have allocations, and the page's last UUID
    (None for the last page)."""
    with stores.api.reading() as tx:
        holding = audits.owners(tx, after, limit, stores.cell_uuid)
    with stores.cell.reading() as tx:
        placed = audits.placed_by_uuid(tx, after, limit)
    last = min((page[-1] for page in (holding, placed) if len(page) == limit), default=None)
    return [uuid for uuid in sorted({*holding, *placed}) if last is None or uuid <= last], last


def name_of(place: NodeHolder) -> str:
    """Return a name that identifies a holder's place among others of the host, in 255 characters."""
    return f"{place.consumer} {place.node}"[:255]


def suspects(stores: Stores, uuids: Sequence[str]) -> list[str]:
    """Return the servers of these whose allocations look wrong, without a lock."""
    if not uuids:
        return []
    waiting = _waiting_elsewhere(stores, uuids)
    with stores.cell.reading() as cell, stores.api.reading() as tx:
        found = _audit(tx, cell, uuids, waiting)
    return [one.server for one in found if one.differences]


def audit(stores: Stores, uuid: str, cure: Collection[str] = ()) -> Audited:
    """Check one server under its row's lock; differences of the kinds to ``cure`` are corrected in the same
    transaction."""
    waiting = _waiting_elsewhere(stores, [uuid])

    def work(tx: Connection) -> Audited:
        audits.hold(tx, uuid)
        [audited] = _audit(tx, cell, [uuid], waiting)
        for one in audited.differences:
            if one.kind in cure:
                _correct(tx, cell, one)
        return audited
    with stores.cell.reading() as cell:
        try:
            return stores.api.transact(work)
        except errors.quota.AuditIncurable as error:
            return stores.api.transact(lambda tx: _audit(tx, cell, [uuid], waiting)[0])._replace(failed=error)


#: Server -> hosts of other cells whose allocations wait for cleanups there.
Waiting = Mapping[str, Collection[str]]


def _waiting_elsewhere(stores: Stores, uuids: Sequence[str]) -> Waiting:
    """Return the hosts of other cells that the servers have left, and whose cleanups are not done. A host whose cell
    cannot be asked counts as one."""
    if stores.cells is not None and not stores.cells.several:
        return {}
    with stores.api.reading() as tx:
        if stores.cells is None and len(cell_mappings.by_uuid(tx)) < 2:
            return {}
        held = audits.held(tx, uuids)
    return {uuid: {host for host in {place.host for place in places} if _waits_at(stores, uuid, host)}
            for uuid, places in held.items()}


def _waits_at(stores: Stores, uuid: str, host: str) -> bool:
    if stores.cells is None:
        with stores.cell.reading() as tx:
            return not audits.has_node(tx, host)
    away: list[errors.NovaError] = []
    with failures.parked(away.append, on=errors.Unavailable):
        if (other := stores.cells.of_host_outside(stores.cell_uuid, host)) is None:
            return False
        with other.cell.reading() as tx:
            return host in host_cleanups.hosts_of(tx, [uuid]).get(uuid, ())
    return bool(away)


def _audit(tx: Connection, cell: Connection, uuids: Sequence[str], waiting: Waiting) -> list[Audited]:
    """Compare the servers' allocations with their records. ``tx`` is of the api database. The cell is read first, for
    cleanups (:func:`nova.db.placement.audits.rows`)."""
    rows = audits.rows(cell, uuids)
    held, opened = audits.held(tx, uuids), audits.opened_lately(tx, uuids)
    found = []
    for uuid in uuids:
        hosts = {*rows.cleanup_hosts.get(uuid, ()), *waiting.get(uuid, ())}
        known = _known(uuid, rows, uuid in opened, hosts)
        found.append(Audited(uuid, compare(known, held.get(uuid, {})), known.unsure))
    return found


def _known(uuid: str, rows: audits.Rows, opened: bool, cleanup_hosts: Collection[str]) -> KnownServer:
    row = rows.servers.get(uuid)
    if uuid in rows.busy:
        return KnownServer(uuid, unsure="an operation works on it")
    if row is None:
        return KnownServer(uuid, unsure="it is being created or deleted") if opened else \
            KnownServer(uuid, gone=True, cleanup_hosts=cleanup_hosts)
    if row.task_state is not None:
        return KnownServer(uuid, unsure=f"its task is {row.task_state}")
    if row.vm_state == VmState.ERROR.value:
        return KnownServer(uuid, unsure="it is in ERROR, and may have lost its allocations")
    needs: dict[NodeHolder, Amounts] = {}
    if row.host is not None:
        needs[NodeHolder(row.host, row.node, uuid)] = _amounts(row, row.flavor)
    for move in rows.moves.get(uuid, ()):
        needs[NodeHolder(move.source_compute, move.source_node, move.uuid)] = _amounts(row,
                                                                                       move.old_flavor or row.flavor)
    return KnownServer(uuid, needs=needs, cleanup_hosts=cleanup_hosts)


def _amounts(row: AuditedServer, flavor: Flavor) -> Mapping[str, int]:
    return classes(local(flavor, row.volumes), row.image.properties if row.image else {})


def _correct(tx: Connection, cell: Connection, one: Difference) -> None:
    """Correct one difference. Raises quota.AuditIncurable for servers with dedicated processors or devices, because
    only the host knows which ones a guest has."""
    if one.kind in TOO_MUCH:
        audits.give_back(tx, one.place)
        return
    row = audits.rows(cell, [one.server]).servers[one.server]
    if _requires_more(row):
        raise errors.quota.AuditIncurable(what=f"server {one.server} requires more than vcpus, memory and disk, and "
                                               f"its exact devices on {one.place.host} are unknown: migrate it")
    if audits.root_at(tx, one.place) is None:
        raise errors.quota.AuditNoNode(host=one.place.host, node=one.place.node)
    audits.write(tx, one.place, one.server, one.needed)


def _requires_more(row: AuditedServer) -> bool:
    if row.port_demands:
        return True
    with contextlib.suppress(errors.Invalid):  # its requirements are unknown
        return needs_of(row.flavor, row.image.properties if row.image else {}).requirements is not None
    return True


# -- inventories

class _Nothing(Exception):
    """Signal that the writes changed no data: rolled back, so that the generation does not increase."""


class _Found(_Nothing):
    """Signal that data would change, in a run that must not change any."""


def rebuild_inventories(stores: Stores, change: bool = True) -> Iterator[str]:
    """Yield the hosts whose providers, inventories or traits differ from their last report; with ``change``, correct
    them."""
    after = ""
    while True:
        with stores.cell.reading() as tx:
            page = [(one, enrolments.capacity_limits(tx, one.host)) for one in audits.reports(tx, after, PAGE)]
        for report, limits in page:
            if _rebuild(stores, report, limits, change):
                yield report.host
        if len(page) < PAGE:
            return
        after = page[-1][0].host


def _rebuild(stores: Stores, report: Inventory, limits: Capacities, change: bool) -> bool:
    uuids = [node.uuid for node in report.nodes]

    def work(tx: Connection) -> bool:
        before = audits.shape(tx, uuids)
        reports.write_providers(tx, report, limits)
        if audits.shape(tx, uuids) == before:
            raise _Nothing
        if not change:
            raise _Found
        return True
    try:
        return stores.api.transact(work)
    except _Found:
        return True
    except _Nothing:
        return False


__all__ = ["ALL", "Audited", "Stores", "audit", "name_of", "page", "rebuild_inventories", "review", "suspects"]
