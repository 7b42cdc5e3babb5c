"""Steps that move servers, with their open operations, from one cell to another.

The ledger alone decides which cell a server is in. A move copies the server's rows, records the new cell in the ledger,
and removes the old rows. A process may die after each part: then the operation is taken over in both cells, and the
copy that the ledger does not name removes itself. A newer operation that begins in the old cell after such a death,
for example a delete, takes precedence: the move is withdrawn.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

import msgspec

from nova import errors, failures
from nova.conductor.engine.deps import Deps
from nova.conductor.engine.operation import Op, Result
from nova.conductor.engine.workflow import Step, entries_of
from nova.conductor.steps.placement import cleanup_hosts, taken
from nova.db.quota import server_cells
from nova.db.server import transfers
from nova.db.server.states import Entry
from nova.db.server.transfers import Left, WholeServer
from nova.db.sql.engine import Connection

#: Result for a server that is in the cell where its operation continues, with no copy left elsewhere.
STAYED: Mapping[str, object] = {"left_cell": None}


class CellStep(Step):
    """A step that moves servers between cells. Subclasses choose the cells, and record the parts that hosts keep."""

    uses: ClassVar[tuple[str, ...]] = ("api", "cell", "cell_uuid", "cells", "settings")
    pure = True  # its journal is the open operation in the copy

    def copied(self, tx: Connection, op: Op, whole: WholeServer) -> WholeServer:
        """Return the rows for the new cell, whose database is ``tx``."""
        return whole

    def left(self, tx: Connection, deps: Deps, op: Op) -> None:
        """Record what the server leaves on hosts of the old cell, in the transaction that removes its rows there.
        ``deps``: of the old cell."""

    def arrived(self, deps: Deps, ops: Sequence[Op]) -> set[str]:
        """Return the servers that are in this cell by the ledger, once no older copy of them is left; remove this
        cell's copies of the others. A slow conductor that wrote such a copy can then no longer record it."""
        with deps.api.reading() as tx:
            cells = server_cells.cells_of(tx, [op.uuid for op in ops])
        elsewhere = {op.uuid: op.entry.epoch for op in ops if cells.get(op.uuid) != deps.cell_uuid}
        if elsewhere:
            cells |= deps.api.transact(lambda tx: server_cells.fenced_cells_of(tx, elsewhere))
        here = [op for op in ops if cells.get(op.uuid) == deps.cell_uuid]
        gone = [op for op in ops if cells.get(op.uuid) != deps.cell_uuid]
        _remove(deps, [op.entry for op in gone if op.progress.left_cell])  # copies, which were written too late
        if moved := [op for op in gone if not op.progress.left_cell]:  # whose removal was lost
            deps.cell.transact(lambda tx: self._leave(tx, deps, moved, transfers.leave(tx, entries_of(moved))))
        left: dict[str, list[Op]] = {}
        for op in here:
            if op.progress.left_cell:
                left.setdefault(op.progress.left_cell, []).append(op)
        overtaken = {uuid for old, group in left.items()
                     for uuid in self._remove_old(deps.cells.named(old), deps, group)}
        return {op.uuid for op in here} - overtaken

    def _remove_old(self, old: Deps, new: Deps, ops: Sequence[Op]) -> frozenset[str]:
        """Remove the old cell's rows of servers whose operations continue in the new one. Return the servers whose move
        is withdrawn, because a newer operation began in the old cell."""
        overtaken = old.cell.transact(lambda tx: self._leave(tx, old, ops, transfers.leave(tx, entries_of(ops)))).stay
        if overtaken:
            new.api.transact(lambda tx: server_cells.back_to_cell(tx, overtaken, new.cell_uuid, old.cell_uuid))
            _remove(new, [op.entry for op in ops if op.uuid in overtaken])
        return overtaken

    def _leave(self, tx: Connection, deps: Deps, ops: Sequence[Op], left: Left) -> Left:
        for op in ops:
            if op.uuid in left.gone:
                self.left(tx, deps, op)
        return left

    def move(self, deps: Deps, target: Deps, ops: Sequence[Op], direction: str = "do") -> None:
        """Move the servers, and hand their operations over. The old rows are locked until they are removed: a change
        of them is either in the copy, or finds no row here and reaches the copy by the ledger."""
        arrived = deps.cell.transact(lambda tx: self._carry(tx, deps, target, ops, direction))
        # nothing is left here
        arrived = [msgspec.structs.replace(entry, data={**entry.data, **STAYED}) for entry in arrived]
        target.runner.go_on(arrived, ops[0])

    def _carry(self, tx: Connection, deps: Deps, target: Deps, ops: Sequence[Op], direction: str) -> list[Entry]:
        """Copy the servers, record their new cell and remove the old rows, in a transaction of the old cell. Return the
        operations in the copies, without those of servers that have not moved: they were overtaken."""
        by_uuid = {op.uuid: op for op in ops}
        copied = transfers.Copied(target.journal.runner_id, {
            op.uuid: self.continued(op, deps.cell_uuid, direction) for op in ops})
        whole = transfers.read(tx, entries_of(ops))
        copies = target.cell.transact(lambda there: transfers.write(
            there, [self.copied(there, by_uuid[one.uuid], one) for one in whole], copied))
        epochs = {entry.server_uuid: entry.epoch for entry in copies}
        moved = deps.api.transact(
            lambda api: server_cells.move_to_cell(api, epochs, deps.cell_uuid, target.cell_uuid))
        _remove(target, [entry for entry in copies if entry.server_uuid not in moved])
        arrived = [entry for entry in copies if entry.server_uuid in moved]
        self._leave(tx, deps, ops, transfers.leave(tx, arrived, whole))
        return arrived

    def continued(self, op: Op, old_cell: str, direction: str) -> Entry:
        """Return the operation as it continues in the copy, where it has another key."""
        progress = msgspec.structs.replace(op.progress, left_cell=old_cell)
        return msgspec.structs.replace(op.entry, step=self.name, direction=direction, data=progress.over(op.entry.data))


def _remove(deps: Deps, entries: Sequence[Entry]) -> None:
    """Remove a cell's copies of these operations and their servers."""
    if entries:
        deps.cell.transact(lambda tx: transfers.remove(tx, entries))


class PlaceInCell(CellStep):
    """Move new servers to the cells of their hosts: from the entry cell, and from the cell of a host that refused them.
    With one cell: no effect."""

    def do(self, deps: Deps, ops: Sequence[Op]) -> Sequence[Result]:
        if not deps.cells.several:
            return [STAYED for _ in ops]
        arrived = self.arrived(deps, ops)
        lost: list[errors.NovaError] = []
        cells, unreached = dict[str, str](), dict[str, errors.NovaError]()
        for op in [one for one in ops if one.uuid in arrived]:
            with failures.parked(lost.append, on=(errors.Unavailable, errors.host.NotFound)):
                cells[op.uuid] = deps.cells.of_host(taken(op).host).cell_uuid
            if op.uuid not in cells:  # only this host, so the server tries the next one
                unreached[op.uuid] = errors.HostRefused(lost[-1].message)
        leaving = {uuid: cell for uuid, cell in cells.items() if cell != deps.cell_uuid}
        refused = {**unreached, **self._refused(deps, [op for op in ops if op.uuid in leaving])}
        moving: dict[str, list[Op]] = {}
        for op in ops:
            if op.uuid in leaving and op.uuid not in refused:
                moving.setdefault(leaving[op.uuid], []).append(op)
        for target, group in moving.items():
            self.move(deps, deps.cells.named(target), group)
        there = dict.fromkeys(cells.keys() - leaving.keys(), STAYED)
        return [there.get(op.uuid) or refused.get(op.uuid) or errors.cell.Elsewhere() for op in ops]

    def _refused(self, deps: Deps, ops: Sequence[Op]) -> dict[str, errors.NovaError]:
        """Return the servers that stay, because a host that could not build them has a pending cleanup: orders to that
        host, and the release of its resources, belong to this cell."""
        retried = [op for op in ops if len(op.progress.tried) > 1]
        pending = cleanup_hosts(deps, retried) if retried else {}
        return {op.uuid: errors.cell.CleanupPending(host=taken(op).host, pending=pending[op.uuid][0])
                for op in retried if op.uuid in pending}
