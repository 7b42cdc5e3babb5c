"""The cells of a super conductor: it connects to each recorded cell while it runs, and serves all of them.

A cell that is added, changed or removed (``nova-manage cell_v2``) is noticed within seconds. A cell that cannot
be reached yet counts as away; all others are served meanwhile.
"""

from __future__ import annotations

import contextlib
import functools
import logging
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from nova import errors, failures
from nova.cmd.conductor_databases import cell_database, check_schema, database
from nova.cmd.conductor_hosts import cells_wrap, configured_urls
from nova.cmd.conductor_shared import AT_ONCE, BINARY, ENROLMENTS_S, ControlClients, Job, host_side, make_deps
from nova.conf._options import Options
from nova.conf._security_mode import asked_mode
from nova.model.host.cell_urls import CellUrls, of_one_database
from nova.model.host.cells import CELL, CELL0, CellMapping
from nova.model.host.services import ServiceQuery
from nova.service import PeriodicTask

if TYPE_CHECKING:
    from nova.conductor.cells.live_cells import LiveCells
    from nova.conductor.engine.deps import Deps
    from nova.conductor.hosts.host_buses import HostBuses
    from nova.db.sql.engine import Database

LOG = logging.getLogger(__name__)

LOOK_S = 2.0
ENTRY_S = 20.0  # interval in which a conductor of another cell than the entry looks for super conductors
#: Gives dependencies with databases and hosts what a super conductor has besides: a journal, a runner, quotas ...
Complete = Callable[["Deps"], None]


class OwnPlace(NamedTuple):
    """The cell of a conductor's own database. ``entry_url``: the database of the entry cell, if that is another one."""

    uuid: str
    entry_url: str = ""


class Records:
    """The records of cells, decrypted again only after they have changed: the key's derivation costs 50 ms."""

    def __init__(self, options: Options, api: Database) -> None:
        self._options, self._api = options, api
        self._rows: dict[str, CellMapping] = {}
        self._cells: tuple[CellMapping, ...] = ()

    def read(self) -> tuple[CellMapping, ...]:
        """Return the recorded cells, in one statement if they are unchanged; () before any is recorded. Raises
        config.CellUrlSealed, config.GeneratedCellKey; DatabaseUnavailable."""
        from nova.conductor.cells.records import cell_records
        from nova.db.host import cell_mappings

        with self._api.reading() as tx:
            rows = cell_mappings.by_uuid(tx)
        if rows != self._rows:
            self._cells = cell_records(self._api, cells_wrap(self._options, self._api), configured_urls(self._options))
            self._rows = rows
        return self._cells

    def with_database(self, cells: Sequence[CellMapping], url: str) -> list[CellMapping]:
        """Return those of the cells that have this database. The first cell without a record has the configured one,
        unless that is recorded as another cell's."""
        found = [one for one in cells if of_one_database(one.database_connection or "", url)]
        return [one for one in found if one.uuid in self._rows] or found


def own_place(options: Options, api: Database) -> OwnPlace:
    """Return which cell ``[database]`` is. A conductor with cell0's database makes cell0 the entry cell. A database
    that is not recorded is that of the first cell."""
    from nova.db.host import cell_mappings

    records, own = Records(options, api), options.database.connection or ""
    known = records.read()
    found = records.with_database(known, own)
    if not found and any(one.uuid == CELL for one in known):
        LOG.warning("[database]connection is not that of any recorded cell; it counts as the first cell's. If it is "
                    "another cell's, correct the record with: nova-manage cell_v2 update_cell")
    place = _place(found, known, own)
    if place.uuid == CELL0:
        api.transact(lambda tx: cell_mappings.make_entry(tx, CELL0))
    return place


def _place(found: Sequence[CellMapping], known: Sequence[CellMapping], own: str) -> OwnPlace:
    """Return the place of a conductor with the database ``own``, which is that of the cells ``found``."""
    if not found:
        return OwnPlace(CELL)
    mine = min(found, key=lambda one: one.uuid != CELL).uuid
    urls = [one.database_connection or "" for one in known if one.is_entry and one.uuid != mine]
    return OwnPlace(mine, next((url for url in urls if mine != CELL0 and not of_one_database(url, own)), ""))


def serves_another_cell(options: Options) -> bool:
    """Return whether this is a cell conductor although nova.conf has the api database: another cell is the entry, and
    super conductors are up there. Without them this conductor serves all cells, as deployment tools expect of their
    only one."""
    api = database(options, "api")
    try:
        check_schema(api)
        url = own_place(options, api).entry_url
    finally:
        api.dispose()
    return bool(url) and _has_conductors(options, url)


def _has_conductors(options: Options, url: str) -> bool:
    """Return whether a conductor is up in the cell of this database. A database without tables has none."""
    from nova.db.host import services

    entry = cell_database(options, url)
    try:
        with contextlib.suppress(errors.NovaError):
            check_schema(entry)
            with entry.reading() as tx:
                found = services.select(tx, ServiceQuery(binary=BINARY))
            return any(services.value(row, clock, options.service_down_time, "").up for row, clock in found)
        return False
    finally:
        entry.dispose()


class Connection(NamedTuple):
    """A connection to another cell. ``jobs``: its periodic tasks."""

    record: CellMapping
    deps: Deps
    buses: HostBuses
    jobs: list[PeriodicTask]


class OtherCells:
    """The connections to all cells but the conductor's own. ``complete`` gives a cell's dependencies the parts
    that only a super conductor has."""

    def __init__(self, options: Options, cells: LiveCells, clients: ControlClients, complete: Complete,
                 first: bool, clock: Callable[[], float] = time.monotonic) -> None:
        self._options, self._cells, self._clients, self._complete = options, cells, clients, complete
        self._first, self._records = first, Records(options, cells.entry.api)
        self._made: dict[str, Connection] = {}
        self._reasons: dict[str, str] = {}  # why a cell is not reached, as logged
        self.why_not_ours = ""
        self._clock, self._entry_due = clock, 0.0

    def look(self) -> None:
        """Connect to cells that were added or changed, and leave removed cells. If this conductor would have another
        role now than at its start, ``why_not_ours`` tells the reason, and it has to start again: deployment tools may
        start conductors before they record cells, and after a power failure super conductors may come back later."""
        cells = self._records.read()
        if self._has_other_role(cells):
            return
        wanted = {one.uuid: one for one in cells
                  if one.uuid not in (self._cells.entry.cell_uuid, CELL0)}
        for uuid in {*self._made, *self._reasons} - wanted.keys():
            self._reasons.pop(uuid, None)
            self._leave(uuid)
        for uuid, record in wanted.items():
            known = self._made.get(uuid)
            if known is not None and _same_place(known.record, record):
                known.deps.cell_closed = record.disabled
                continue
            with failures.parked(functools.partial(self._wait, record), on=errors.NovaError):
                self._connect(record)
        self._cells.forget_hosts()

    def _has_other_role(self, cells: Sequence[CellMapping]) -> bool:
        own, mine = self._options.database.connection or "", self._cells.entry.cell_uuid
        found = self._records.with_database(cells, own)
        place = _place(found, cells, own)
        if not found:  # the record may have the URL of a new database already
            return False
        if place.uuid != mine:
            self.why_not_ours = (f"[database]connection is that of cell {place.uuid} now, and was that of cell {mine} "
                                 "at the start")
        elif place.entry_url and self._clock() > self._entry_due:
            self._entry_due = self._clock() + ENTRY_S
            if _has_conductors(self._options, place.entry_url):
                self.why_not_ours = "super conductors of the entry cell are up again, so this one serves its cell alone"
        return bool(self.why_not_ours)

    def _connect(self, record: CellMapping) -> None:
        from nova.conductor.cells.carrying import Carrying
        from nova.conductor.hosts.registration import ServiceRegistry
        from nova.conductor.hosts.security import agree_on_mode
        from nova.rpc.bus import pins
        from nova.rpc.client import Peers

        if record.uuid in self._made:
            self._cells.add_away(record.uuid)
            self._end(record.uuid)
        cell = cell_database(self._options, record.database_connection or "")
        with failures.on_failure(cell.dispose):
            check_schema(cell)
            mode, peers = agree_on_mode(cell, asked_mode(self._options)), Peers(pins(self._options))
            side = host_side(self._options, cell, mode, peers, CellUrls(record.transport_url or "",
                                                                       record.database_connection or ""))
            deps = make_deps(self._options, (self._cells.entry.api, cell), side, self._clients)
            deps.cell_uuid, deps.cell_closed = record.uuid, record.disabled
            self._complete(deps)
            deps.journal.open()
        daemons = ServiceRegistry(deps)
        jobs: list[Job] = [
            (deps.journal.lease_s / 4, deps.journal.renew, "lease"),
            (deps.journal.lease_s / 4, deps.runner.sweep, "takeover"),
            (1.0, side.calls.resend_lost_calls, "hosts that came back"),
            (ENROLMENTS_S, side.buses.keep_enrolments, "enrolled hosts"),
            (self._options.report_interval, lambda: daemons.refresh(peers), "known daemons"),
            *upkeep(deps, first=self._first)]
        name = record.name or record.uuid
        carrying = [PeriodicTask(1.0, Carrying(deps).carry, f"reports of cell {name}", again_s=1.0).start()
                    ] if self._first else []
        self._made[record.uuid] = Connection(record, deps, side.buses, [
            *carrying, *[PeriodicTask(period, job, f"{what} of cell {name}", at_once=what in AT_ONCE).start()
                         for period, job, what in jobs]])
        self._cells.add(deps)
        self._reasons.pop(record.uuid, None)
        LOG.info("serving cell %s (%s)", name, record.uuid)

    def _wait(self, record: CellMapping, error: errors.NovaError) -> None:
        """Note that a cell cannot be reached: it counts as away until then."""
        name = record.name or record.uuid
        if self._reasons.get(record.uuid) != error.message:
            self._reasons[record.uuid] = error.message
            LOG.warning("cell %s cannot be reached yet, so its servers are not available: %s", name, error.message)
        if not self._cells.is_away(record.uuid):
            self._cells.add_away(record.uuid)

    def _leave(self, uuid: str) -> None:
        self._cells.remove(uuid)
        self._end(uuid)

    def _end(self, uuid: str) -> None:
        """End the connection to a cell, if there is one. Its lease may end by itself: the cell may be away."""
        left = self._made.pop(uuid, None)
        if left is None:
            return
        for job in left.jobs:
            job.stop()
        with failures.best_effort(LOG, "the lease in a cell was not released: %s", on=errors.Unavailable):
            left.deps.journal.close()
        for bus in left.buses.buses:
            bus.close()
        left.deps.cell.dispose()

    def stop(self) -> None:
        """End the leases in all cells, so that other conductors continue immediately."""
        for uuid in list(self._made):
            self._leave(uuid)

    @property
    def running(self) -> int:
        """The number of operations of this process in these cells."""
        return sum(one.deps.runner.running for one in self._made.values())


def upkeep(deps: Deps, first: bool) -> list[Job]:
    """Return the periodic jobs about a cell's rows. ``first``: those of a conductor's first worker, too."""
    from nova.conductor.upkeep import periodic, timeouts

    of_first = [*periodic.jobs(), *timeouts.jobs(deps.settings)] if first else []
    return [*deps.networking.jobs(first),
            *((period, functools.partial(job, deps), name) for period, job, name in of_first)]


def _same_place(one: CellMapping, other: CellMapping) -> bool:
    return (one.transport_url, one.database_connection) == (other.transport_url, other.database_connection)
