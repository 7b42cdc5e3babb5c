"""Pages of servers of all cells, merged by the query's sort order.

Servers with equal sort values are ordered by their cell, and in a cell by their key, so that pages never overlap. Each
cell is asked for its share of the page's names and sort values, and then for the details of the servers that are on the
page: three statements in a cell, and one more where a cell has most of the page. For the live servers of one project,
only the cells that have any are asked.

A server that moves meanwhile may leave a cell before that cell is read, and enter a cell after it was read: the ledger
tells of such servers, which are then asked for by their UUIDs.
"""

from __future__ import annotations

import datetime
import math
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import NamedTuple

import msgspec

from nova import errors
from nova.conductor.cells.fan_out import CellAnswer, PerCell
from nova.conductor.cells.live_cells import LiveCells
from nova.conductor.engine.deps import Deps
from nova.conductor.queries.servers import Servers, shown
from nova.db.quota import server_cells
from nova.db.server import server_lists
from nova.db.server.server_lists import ListedServer, Marker
from nova.db.sql.engine import Connection
from nova.model.base import Time
from nova.model.server.servers import Condition, ServerDetail, ServerListQuery, ServerPage, ServerSummary

MOVING = datetime.timedelta(seconds=2)  # longest time from a move's entry in the ledger to its commit, and more

EPOCH = datetime.datetime(1970, 1, 1)

Listed = ServerDetail | ServerSummary


class PagePart(NamedTuple):
    """A cell's names on a page, in their order. ``more``: the cell may have others on the page."""

    names: Sequence[ListedServer]
    more: bool = False


class Placed(NamedTuple):
    """A server on the page, and its cell."""

    cell: Deps
    server: ListedServer


class MergedServerLists:
    """The ``list_servers`` call of ConductorRPC."""

    def __init__(self, cells: LiveCells, servers: Callable[[Deps], Servers] = Servers) -> None:
        self.cells, self._servers = cells, PerCell(servers)

    def list_servers(self, query: ServerListQuery) -> ServerPage:
        """Return a page, as :meth:`nova.conductor.queries.servers.Servers.list_servers`. Cells that do not answer are
        treated by the query's ``silent_cells``."""
        if not self.cells.several:
            return self._servers(self.cells.entry).list_servers(query)
        limit = self._servers(self.cells.entry).limit(query)
        if limit <= 0:
            return ServerPage()
        page, away = self._named(query, limit)
        found: Sequence[Listed] = [ServerSummary(uuid=one.server.uuid, name=one.server.name) for one in page]
        if query.detail:
            found, lost = self._detailed(page)
            away += lost
        if away and query.silent_cells not in UNKNOWN:
            raise away[0].value
        if away and not query.page.marker:
            found = [*found, *UNKNOWN[query.silent_cells]([one.cell for one in away], query, limit - len(found))]
        return _page(query, found)

    def _named(self, query: ServerListQuery, limit: int) -> tuple[list[Placed], list[CellAnswer[errors.Unavailable]]]:
        """Return the page's servers, and the cells that do not answer."""
        marked = self._marked(query)
        with self.cells.entry.api.reading() as tx:
            begun = server_cells.clock(tx)
            asked = self._asked(tx, query)
        share = share_of(limit, len(asked))
        answers = self.cells.fan_out.ask(lambda cell: self._part(cell, query, share, limit, marked), asked)
        parts, page = answers.found, first(limit, query, answers.found)
        chosen = {one.server.uuid for one in page}
        if short := [part.cell for part in parts if part.value.more and part.value.names[-1].uuid in chosen]:
            whole = self.cells.fan_out.ask(lambda cell: self._part(cell, query, limit, limit, marked), short)
            answers.away.extend(whole.away)
            again = {cell.cell_uuid for cell in short}
            parts = [*(part for part in parts if part.cell.cell_uuid not in again), *whole.found]
        missing = self._moved(query, begun) - {one.uuid for part in parts for one in part.value.names}
        if missing:
            parts = [*parts, *self._among(query, limit, marked, missing)]
        if short or missing:
            page = first(limit, query, sorted(parts, key=lambda part: part.cell.cell_uuid))
        return page, answers.away

    def _asked(self, tx: Connection, query: ServerListQuery) -> list[Deps]:
        """Return the cells that may have servers of the page: of a project's live servers, the ledger's (``tx``)."""
        every = list(self.cells.all())
        if query.scope.project_id is None or query.deleted != "live":
            return every
        of_project = server_cells.with_servers_of(tx, query.scope.project_id)
        return [cell for cell in every if cell.cell_uuid in of_project]

    def _detailed(self, page: Sequence[Placed]) -> tuple[list[ServerDetail], list[CellAnswer[errors.Unavailable]]]:
        """Return the details of the page's servers, and the cells that do not answer any more."""
        by_cell: dict[str, list[str]] = {}
        for one in page:
            by_cell.setdefault(one.cell.cell_uuid, []).append(one.server.uuid)
        cells = list({one.cell.cell_uuid: one.cell for one in page}.values())
        answers = self.cells.fan_out.ask(lambda cell: self._servers(cell).details(by_cell[cell.cell_uuid]), cells)
        found = {one.uuid: one for answer in answers.found for one in answer.value}
        lost = {uuid for answer in answers.away for uuid in by_cell[answer.cell.cell_uuid]}
        if left := [one.server.uuid for one in page if one.server.uuid not in found and one.server.uuid not in lost]:
            moved = self.cells.fan_out.ask(lambda cell: self._servers(cell).details(left)).found
            found |= {one.uuid: one for answer in moved for one in answer.value}
        return [found[one.server.uuid] for one in page if one.server.uuid in found], answers.away

    def _marked(self, query: ServerListQuery) -> CellAnswer[Marker] | None:
        """Return the marker's values, and its cell. Raises api.PageMarkerNotFound; Unavailable for its cell."""
        if not query.page.marker:
            return None
        cells = self.cells
        with cells.entry.api.reading() as tx:
            uuid = server_cells.cells_of(tx, [query.page.marker]).get(query.page.marker)
        if uuid is None:
            raise errors.api.PageMarkerNotFound(marker=query.page.marker)
        cell = cells.named(uuid)
        with self.cells.fan_out.turn(cell), cell.cell.reading() as tx:
            return CellAnswer(cell, server_lists.marker_of(tx, query))

    def _moved(self, query: ServerListQuery, begun: Time) -> set[str]:
        """Return the servers that may have moved to another cell since this time."""
        with self.cells.entry.api.reading() as tx:
            return server_cells.moved_since(tx, begun - MOVING, query.scope.project_id)

    def _among(self, query: ServerListQuery, limit: int, marked: CellAnswer[Marker] | None, uuids: Collection[str]
               ) -> Sequence[CellAnswer[PagePart]]:
        """Return the cells' parts with these servers only."""
        only = Condition(column="uuid", op="in", values=tuple(sorted(uuids)))
        narrow = msgspec.structs.replace(query, conditions=(*query.conditions, only))
        return self.cells.fan_out.ask(lambda cell: self._part(cell, narrow, limit, limit, marked)).found

    def _part(self, cell: Deps, query: ServerListQuery, share: int, limit: int, marked: CellAnswer[Marker] | None
              ) -> PagePart:
        marker = None if marked is None else marker_in(cell.cell_uuid, marked.cell.cell_uuid, marked.value)
        names = self._servers(cell).names(query, share, marker)
        return PagePart(names, more=share < limit and len(names) == share)


def share_of(limit: int, cells: int) -> int:
    """Return the number of names that each cell is asked for: seldom has one of many cells more of a page."""
    equal = limit / max(cells, 1)
    return min(limit, int(equal + 4 * math.sqrt(equal)) + 1)


def marker_in(cell: str, cell_of_marker: str, marker: Marker) -> Marker:
    """Return the marker for a page of ``cell``: of equal servers, those in cells before the marker's are before it."""
    return marker if cell == cell_of_marker else Marker(marker.values, ties=cell > cell_of_marker)


def first(limit: int, query: ServerListQuery, parts: Sequence[CellAnswer[PagePart]]) -> list[Placed]:
    """Return the first servers of all parts in the query's order, each once; ``parts`` are in the cells' order. While a
    new server moves to its cell, both cells have it for an instant."""
    keys = [_descending if down else _ascending for down in server_lists.descending(query)]
    keyed = [([key(value) for key, value in zip(keys, one.values, strict=True)], rank, number)
             for rank, part in enumerate(parts) for number, one in enumerate(part.value.names)]
    keyed.sort()  # joins the sorted parts in about linear time
    page: dict[str, Placed] = {}
    for _key, rank, number in keyed:
        if len(page) == limit:
            break
        one = parts[rank].value.names[number]
        page.setdefault(one.uuid, Placed(parts[rank].cell, one))
    return list(page.values())


def _ascending(value: object) -> tuple[bool, object]:
    """Return a key that sorts as the databases do: NULL is the lowest value."""
    return value is not None, 0 if value is None else value


def _descending(value: object) -> tuple[bool, object]:
    """Return a key that sorts the other way round."""
    if isinstance(value, datetime.datetime):
        return False, EPOCH - value
    if isinstance(value, str):
        return False, _Reversed(value)
    return (False, -value) if isinstance(value, (int, float)) else (True, 0)


class _Reversed(str):
    """Text that sorts the other way round."""

    __slots__ = ()

    def __lt__(self, other: str) -> bool:
        return str.__gt__(self, other)


def _page(query: ServerListQuery, found: Sequence[Listed]) -> ServerPage:
    if query.detail:
        return ServerPage(servers=tuple(one for one in found if isinstance(one, ServerDetail)))
    return ServerPage(summaries=tuple(one for one in found if isinstance(one, ServerSummary)))


def _unknown(away: Sequence[Deps], query: ServerListQuery, limit: int) -> list[Listed]:
    page = shown(away[0], query, limit, [cell.cell_uuid for cell in away])
    return [*page.servers, *page.summaries]


#: ``silent_cells`` -> the servers to add for cells that do not answer. For other values the list fails.
UNKNOWN: Mapping[str, Callable[[Sequence[Deps], ServerListQuery, int], list[Listed]]] = {
    "skip": lambda away, query, limit: [], "show": _unknown}

__all__ = ["MergedServerLists", "PagePart", "first", "marker_in"]
