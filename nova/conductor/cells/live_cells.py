"""The cells that a super conductor serves: each cell's dependencies, and the cells of hosts and servers."""

from __future__ import annotations

import collections
import contextlib
import dataclasses
import threading
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import NamedTuple, TypeVar

from nova import errors
from nova.conductor.cells.fan_out import FanOut
from nova.conductor.engine.deps import Deps
from nova.db.host import hosts, services
from nova.db.host.hosts import NodeRow
from nova.db.placement import placement_facts
from nova.db.quota import server_cells
from nova.db.sql.engine import Connection, Database, DatabaseUnavailable, Engine
from nova.model.host.cells import CELL0

T = TypeVar("T")

BUSY_S = 1.0


class AwayDatabase(Database):
    """The database of a cell that cannot be served yet: each use raises DatabaseUnavailable at once."""

    def __init__(self) -> None:
        super().__init__("none://", schema="cell")

    @property
    def engine(self) -> Engine:
        """Raise DatabaseUnavailable."""
        raise DatabaseUnavailable("this conductor has no connection to the cell")

    def answers(self) -> bool:
        """Return False."""
        return False


class BusyHosts(NamedTuple):
    """The numbers of servers with I/O-intensive tasks, by host, as read ``at`` a time of the monotonic clock."""

    hosts: Mapping[str, int]
    at: float


class LiveCells:
    """The cells of a cloud. Cells are added while requests run; a cell that is added twice is replaced.

    The cells of hosts are remembered until :meth:`forget_hosts`; those of servers are read from the ledger each time.
    """

    def __init__(self, entry: Deps) -> None:
        """``entry``: the cell of new servers until they have a host."""
        self.entry = entry
        self.fan_out = FanOut(self)
        self._by_uuid = {entry.cell_uuid: entry}
        self._away = set[str]()
        self._hosts: dict[str, str] = {}
        self._lock = threading.Lock()
        self._busy: BusyHosts | None = None
        self._reads_busy = threading.Lock()
        entry.cells = self

    def add(self, cell: Deps) -> None:
        """Serve another cell from now on."""
        cell.cells = self
        with self._lock:
            self._away.discard(cell.cell_uuid)
            self._by_uuid = dict(sorted({**self._by_uuid, cell.cell_uuid: cell}.items()))

    def add_away(self, uuid: str) -> None:
        """Count a cell as away, because it cannot be served yet: calls about its servers fail, and lists without it are
        incomplete."""
        self.add(dataclasses.replace(self.entry, cell=AwayDatabase(), cell_uuid=uuid))
        self._away.add(uuid)

    def is_away(self, uuid: str) -> bool:
        """Return whether the cell is known but cannot be served yet."""
        return uuid in self._away

    def remove(self, uuid: str) -> None:
        """Serve a cell no longer; an unknown one is ignored."""
        with self._lock:
            self._by_uuid = {one: cell for one, cell in self._by_uuid.items() if one != uuid}
            self._away.discard(uuid)

    @property
    def several(self) -> bool:
        """Return whether the cloud has more than one cell."""
        return len(self._by_uuid) > 1

    def all(self) -> Sequence[Deps]:
        """Return every cell, in the order of their UUIDs: the same in all conductors."""
        return tuple(self._by_uuid.values())

    def closed(self) -> tuple[str, ...]:
        """Return the UUIDs of the disabled cells, which get no new servers."""
        return tuple(cell.cell_uuid for cell in self.all() if cell.cell_closed)

    def with_hosts(self) -> Sequence[Deps]:
        """Return the cells that may have hosts: all except cell0."""
        return tuple(cell for cell in self.all() if cell.cell_uuid != CELL0)

    def named(self, uuid: str) -> Deps:
        """Return the cell of this UUID. Raises cell.NotServed."""
        found = self._by_uuid.get(uuid)
        if found is None or uuid in self._away:
            raise errors.cell.NotServed(cell=uuid)
        return found

    def of_server(self, uuid: str) -> Deps:
        """Return the cell of a server, by the ledger. Raises server.NotFound, cell.NotServed."""
        return self.of_servers([uuid])[uuid]

    def of_servers(self, uuids: Collection[str]) -> dict[str, Deps]:
        """Return the cells of servers, in one statement. Raises server.NotFound if the ledger does not know a
        server; cell.NotServed."""
        if not self.several:
            return dict.fromkeys(uuids, self.entry)
        with self.entry.api.reading() as tx:
            found = server_cells.cells_of(tx, uuids)
        for uuid in uuids:
            if uuid not in found:
                raise errors.server.NotFound(server=uuid)
        return {uuid: self.named(found[uuid]) for uuid in uuids}

    def of_host(self, host: str) -> Deps:
        """Return the cell of a compute host. Raises host.NotFound; Unavailable if a cell that does not answer may have
        it."""
        if not self.several:
            return self.entry
        known = self._by_uuid.get(self._hosts.get(host, ""))
        return known or self._look_for(host)

    def of_host_outside(self, uuid: str, host: str) -> Deps | None:
        """Return the cell of a compute host if it is another one than ``uuid``. Raises Unavailable if a cell that does
        not answer may have the host."""
        if not self.several:
            return None
        with contextlib.suppress(errors.host.NotFound):  # removed
            cell = self.of_host(host)
            return cell if cell.cell_uuid != uuid else None
        return None

    def _look_for(self, host: str) -> Deps:
        def names(cell: Deps) -> set[str]:
            with cell.cell.reading() as tx:
                return services.compute_hosts(tx)
        answers = self.fan_out.ask(names)
        with self._lock:
            for answer in answers.found:
                self._hosts.update(dict.fromkeys(answer.value, answer.cell.cell_uuid))
        if host not in self._hosts:
            raise answers.away[0].value if answers.away else errors.host.NotFound(host=host)
        return self.named(self._hosts[host])

    def read(self, question: Callable[[Connection], T]) -> list[T]:
        """Return the answer of each cell's database, without cells that do not answer. Raises Unavailable if none
        does."""
        def read(cell: Deps) -> T:
            with cell.cell.reading() as tx:
                return question(tx)
        answers = self.fan_out.ask(read)
        return [answer.value for answer in answers.found] or answers.values()

    def busy(self) -> Mapping[str, int]:
        """Return the numbers of servers with I/O-intensive tasks, by host. With several cells they are read once a
        second at most, because each request would ask every cell; and no request waits for another one's read. Cells
        that do not answer are left out. Raises Unavailable if none does."""
        if not self.several:
            return self.read(placement_facts.busy)[0]
        known = self._busy
        stale = known is None or time.monotonic() - known.at > BUSY_S
        if stale and self._reads_busy.acquire(blocking=known is None):
            try:
                hosts = dict(collections.ChainMap(*self.read(placement_facts.busy)))
                known = self._busy = BusyHosts(hosts, time.monotonic())
            finally:
                self._reads_busy.release()
        return known.hosts if known is not None else {}

    def any(self, question: Callable[[Connection], bool]) -> bool:
        """Return whether the answer of a cell's database is yes. Raises Unavailable if a cell does not answer, and none
        of the others says yes."""
        def read(cell: Deps) -> bool:
            with cell.cell.reading() as tx:
                return question(tx)
        answers = self.fan_out.ask(read)
        return any(answer.value for answer in answers.found) or any(answers.values())

    def nodes(self) -> dict[str, list[NodeRow]]:
        """Return the nodes of each cell that answers, by its UUID. Raises Unavailable if none does."""
        def read(cell: Deps) -> list[NodeRow]:
            with cell.cell.reading() as tx:
                return hosts.node_rows(tx)
        answers = self.fan_out.ask(read)
        return {answer.cell.cell_uuid: answer.value for answer in answers.found or answers.all()}

    def forget_hosts(self) -> None:
        """Read the cells of hosts again when they are needed: hosts may have been removed or moved to other cells."""
        with self._lock:
            self._hosts = {}
