"""The step that moves new servers to the cell of their selected host: from the entry cell, and from the cell of a host
that refused them.

The ledger alone decides which cell a server is in. A move copies the server's rows, records the new cell in the ledger,
and removes the old rows. A process may die after each part: then the operation is taken over in both cells, and the
copy that the ledger does not name removes itself. A newer operation that begins in the old cell after such a death,
for example a delete, takes precedence: the move is withdrawn.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from nova import errors, failures
from nova.conductor.engine.deps import Deps
from nova.conductor.engine.operation import Op, Result
from nova.conductor.engine.workflow import Step, entries_of
from nova.conductor.steps.placement import cleanup_hosts, taken
from nova.db.quota import server_cells
from nova.db.server import transfers
from nova.db.server.states import Entry
from nova.db.sql.engine import Connection

#: Result for a server that is in the cell of its host, with no copy left elsewhere.
STAYED: Mapping[str, object] = {"left_cell": None}


class PlaceInCell(Step):
    """Move the servers to the cells of their hosts, where their operations continue. With one cell: no effect."""

    uses = ("api", "cell", "cell_uuid", "cells")
    pure = True  # its journal is the open operation in the copy

    def do(self, deps: Deps, ops: Sequence[Op]) -> Sequence[Result]:
        if not deps.cells.several:
            return [STAYED for _ in ops]
        arrived = self._arrived(deps, ops)
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
            self._move(deps, deps.cells.named(target), group)
        there = dict.fromkeys(cells.keys() - leaving.keys(), STAYED)
        return [there.get(op.uuid) or refused.get(op.uuid) or errors.cell.Elsewhere() for op in ops]

    def _refused(self, deps: Deps, ops: Sequence[Op]) -> dict[str, errors.NovaError]:
        """Return the servers that stay, because a host that could not build them has a pending cleanup: orders to that
        host, and the release of its resources, belong to this cell."""
        retried = [op for op in ops if len(op.progress.tried) > 1]
        pending = cleanup_hosts(deps, retried) if retried else {}
        return {op.uuid: errors.cell.CleanupPending(host=taken(op).host, pending=pending[op.uuid][0])
                for op in retried if op.uuid in pending}

    def _arrived(self, deps: Deps, ops: Sequence[Op]) -> set[str]:
        """Return the servers that are in this cell by the ledger, once no older copy of them is left; remove this
        cell's copies of the others."""
        with deps.api.reading() as tx:
            cells = server_cells.cells_of(tx, [op.uuid for op in ops])
        here = [op for op in ops if cells.get(op.uuid) == deps.cell_uuid]
        _remove(deps, [op.entry for op in ops if cells.get(op.uuid) != deps.cell_uuid])
        left: dict[str, list[Entry]] = {}
        for op in here:
            if op.progress.left_cell:
                left.setdefault(op.progress.left_cell, []).append(op.entry)
        overtaken = {uuid for old, entries in left.items()
                     for uuid in self._leave(deps.cells.named(old), deps, entries)}
        return {op.uuid for op in here} - overtaken

    def _leave(self, old: Deps, new: Deps, entries: Sequence[Entry]) -> set[str]:
        """Remove the old cell's rows of servers whose operations continue in the new one. Return the servers whose move
        is withdrawn, because a newer operation began in the old cell."""
        overtaken = old.cell.transact(lambda tx: transfers.leave(tx, entries))
        if overtaken:
            new.api.transact(lambda tx: server_cells.back_to_cell(tx, overtaken, new.cell_uuid, old.cell_uuid))
            _remove(new, [entry for entry in entries if entry.server_uuid in overtaken])
        return overtaken

    def _move(self, deps: Deps, target: Deps, ops: Sequence[Op]) -> None:
        """Move the servers, and hand their operations over. The old rows are locked until they are removed: a change
        of them is either in the copy, or finds no row here and reaches the copy by the ledger."""
        for op in ops:
            op.note(left_cell=deps.cell_uuid)
        arrived = deps.cell.transact(lambda tx: self._carry(tx, deps, target, ops))
        target.runner.go_on(arrived, ops[0])

    def _carry(self, tx: Connection, deps: Deps, target: Deps, ops: Sequence[Op]) -> list[Entry]:
        """Copy the servers, record their new cell and remove the old rows, in a transaction of the old cell. Return the
        operations in the copies, without those of servers that have not moved: they were overtaken."""
        copied = transfers.Copied(target.journal.runner_id, self.name, {op.uuid: op.entry.data for op in ops})
        whole = transfers.read(tx, entries_of(ops))
        copies = target.cell.transact(lambda there: transfers.write(there, whole, copied))
        epochs = {entry.server_uuid: entry.epoch for entry in copies}
        moved = deps.api.transact(
            lambda api: server_cells.move_to_cell(api, epochs, deps.cell_uuid, target.cell_uuid))
        _remove(target, [entry for entry in copies if entry.server_uuid not in moved])
        arrived = [entry for entry in copies if entry.server_uuid in moved]
        transfers.leave(tx, arrived)
        return arrived


def _remove(deps: Deps, entries: Sequence[Entry]) -> None:
    """Remove a cell's copies of these operations and their servers."""
    if entries:
        deps.cell.transact(lambda tx: transfers.remove(tx, entries))
