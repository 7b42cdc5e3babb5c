"""Migrations, requests, usage, cleanups and events of all cells."""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable, Iterable
from typing import TypeVar

import msgspec

from nova import errors
from nova.conductor.cells.fan_out import CellAnswer
from nova.conductor.cells.live_cells import LiveCells
from nova.conductor.cells.routes import Services
from nova.conductor.engine.deps import Deps
from nova.conductor.queries.flavors import capped
from nova.conductor.queries.usage import page_of
from nova.db.quota import server_cells, usage
from nova.db.server import migrations
from nova.db.server.migrations import MigrationMarker
from nova.model.base import HostName, Time
from nova.model.host.services import PendingCleanup
from nova.model.quota.usage import ProjectUsage, UsageAudits, UsagePage, UsageQuery
from nova.model.server.actions import InstanceAction
from nova.model.server.migrations import Migration, MigrationQuery
from nova.model.server.server_parts import ExternalEvent
from nova.rpc.contracts.conductor import ConductorRPC

T = TypeVar("T")

NO_SERVER = 404  # the code of an event about an unknown server


class Everywhere:
    """Base of calls that ask the services of all cells."""

    def __init__(self, cells: LiveCells, services: Services) -> None:
        self.cells, self.services = cells, services

    def each(self, question: Callable[[ConductorRPC], T]) -> list[T]:
        """Return the answers of all cells. Raises Unavailable for a cell that does not answer."""
        return self.cells.fan_out.ask(lambda cell: question(self.services(cell))).values()

    def where(self, has: Callable[[Deps], bool]) -> Deps:
        """Return the cell for which ``has`` is true; the entry cell if there is none, which then raises the
        error. Raises Unavailable if a cell that does not answer may be the one."""
        cells = self.cells
        if not cells.several:
            return cells.entry
        answers = self.cells.fan_out.ask(has)
        having = [answer.cell for answer in answers.found if answer.value]
        if not having and answers.away:
            raise answers.away[0].value
        return having[0] if having else cells.entry


class MergedRecords(Everywhere):
    """The calls of ConductorRPC about migrations, requests, usage, cleanups and events."""

    def list_migrations(self, query: MigrationQuery) -> tuple[Migration, ...]:
        """Return a page of migrations, the newest first. Raises api.PageMarkerNotFound; Unavailable for a cell that
        does not answer."""
        limit = capped(query.page.limit, self.cells.entry.settings.max_limit)
        marked = self._marked(query)

        def page(cell: Deps) -> tuple[Migration, ...]:
            with cell.cell.reading() as tx:
                return migrations.select(tx, query, limit, marked and _in_cell(cell, marked))
        pages = self.cells.fan_out.ask(page).values()
        return tuple(itertools.islice(heapq.merge(*pages, key=lambda one: one.created_at, reverse=True), limit))

    def _marked(self, query: MigrationQuery) -> CellAnswer[MigrationMarker] | None:
        marker = query.page.marker
        if marker is None:
            return None

        def find(cell: Deps) -> MigrationMarker | None:
            with cell.cell.reading() as tx:
                return migrations.find_marker(tx, marker)
        for cell, found in self.cells.fan_out.ask(find).all():
            if found is not None:
                return CellAnswer(cell, found)
        raise errors.api.PageMarkerNotFound(marker=marker)

    def get_request(self, request_id: str) -> tuple[InstanceAction, ...]:
        """Return the operations of a request in the cells that answer, the oldest first."""
        answers = self.cells.fan_out.ask(lambda cell: self.services(cell).get_request(request_id))
        return tuple(sorted(_joined(answer.value for answer in answers.found), key=lambda one: one.started_at))

    # -- usage

    def get_usage(self, query: UsageQuery) -> UsagePage:
        """Return the usage of projects; pages have the servers of all cells by project and UUID. Raises
        api.PageMarkerNotFound; Unavailable for a cell that does not answer, because sums without it would be wrong."""
        if query.sums_alone:
            return UsagePage(projects=self._sums(query))
        limit = capped(query.page.limit, self.cells.entry.settings.max_limit)
        project = self._project_of_marker(query)

        def page(cell: Deps) -> list[usage.UsedServer]:
            with cell.cell.reading() as tx:
                return usage.page(tx, query, limit, project) if limit > 0 else []
        pages = self.cells.fan_out.ask(page).values()
        rows = list(itertools.islice(heapq.merge(*pages, key=lambda one: (one.project_id, one.uuid)), limit))
        return page_of(query, rows, self._sums(query) if not query.paged and len(rows) == limit else None)

    def _sums(self, query: UsageQuery) -> tuple[ProjectUsage, ...]:
        def sums(cell: Deps) -> tuple[ProjectUsage, ...]:
            with cell.cell.reading() as tx:
                return usage.sums(tx, query)
        projects: dict[str, ProjectUsage] = {}
        for one in _joined(self.cells.fan_out.ask(sums).values()):
            known = projects.get(one.project_id)
            projects[one.project_id] = one if known is None else _plus(known, one)
        return tuple(projects[name] for name in sorted(projects))

    def _project_of_marker(self, query: UsageQuery) -> str | None:
        if not query.page.marker:
            return None

        def find(cell: Deps) -> str | None:
            with cell.cell.reading() as tx:
                return usage.project_of(tx, query)
        found = next(filter(None, self.cells.fan_out.ask(find).values()), None)
        if found is None:
            raise errors.api.PageMarkerNotFound(marker=query.page.marker)
        return found

    def get_usage_audits(self, before: Time | None) -> UsageAudits:
        """Return the audits of all cells' hosts."""
        found = self.each(lambda service: service.get_usage_audits(before))
        return msgspec.structs.replace(
            found[0], hosts=tuple(sorted(_joined(one.hosts for one in found))),
            audits={host: audit for one in found for host, audit in one.audits.items()})

    # -- pending cleanups

    def list_debts(self, host: HostName | None) -> tuple[PendingCleanup, ...]:
        """Return the pending cleanups of a host, or of all (None), in the cells' order."""
        return _joined(self.each(lambda service: service.list_debts(host)))

    def forgive_debts(self, host: HostName) -> tuple[PendingCleanup, ...]:
        """Drop a host's pending cleanups in all cells and return them. Raises quota.CleanupHostIsThere."""
        return _joined(self.each(lambda service: service.forgive_debts(host)))

    # -- events

    def external_events(self, events: tuple[ExternalEvent, ...]) -> tuple[int, ...]:
        """Deliver events in the cells of their servers, and return their codes. Raises Unavailable for a cell that does
        not answer: the sender repeats the events."""
        cells = self.cells
        if not cells.several:
            return self.services(cells.entry).external_events(events)
        with cells.entry.api.reading() as tx:
            places = server_cells.cells_of(tx, {event.server_uuid for event in events})
        codes = dict.fromkeys(range(len(events)), NO_SERVER)
        for uuid in sorted(set(places.values())):
            mine = [number for number, event in enumerate(events) if places.get(event.server_uuid) == uuid]
            cell = cells.named(uuid)
            with self.cells.fan_out.turn(cell):
                found = self.services(cell).external_events(tuple(events[number] for number in mine))
            codes |= dict(zip(mine, found, strict=True))
        return tuple(codes.values())


def _in_cell(cell: Deps, marked: CellAnswer[MigrationMarker]) -> MigrationMarker:
    """Return the marker for a page of this cell: of migrations of the same time, those in cells before the marker's are
    before it."""
    there = marked.cell.cell_uuid
    return marked.value if cell.cell_uuid == there else marked.value._replace(id=None, ties=cell.cell_uuid > there)


def _joined(parts: Iterable[Iterable[T]]) -> tuple[T, ...]:
    return tuple(itertools.chain.from_iterable(parts))


def _plus(one: ProjectUsage, other: ProjectUsage) -> ProjectUsage:
    return msgspec.structs.replace(one, **{name: getattr(one, name) + getattr(other, name) for name in (
        "hours", "local_gb_hours", "memory_mb_hours", "vcpu_hours")})
