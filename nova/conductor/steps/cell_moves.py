"""A cold move to another cell. The server changes the cell after its guest was set aside at the source; a revert brings
it back.

While the server is in the other cell, a held cleanup of the source is the record of the guest there. It becomes due
with a confirm or a delete, and is dropped when the server is back.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Sequence

import msgspec

from nova import errors, failures
from nova.conductor.engine.deps import Deps
from nova.conductor.engine.operation import Op, Result
from nova.conductor.steps import moves
from nova.conductor.steps.cells import STAYED, CellStep
from nova.conductor.steps.cleanups import cleanup_of
from nova.conductor.steps.moves import EndOfResize, MoveArguments
from nova.conductor.steps.placement import taken
from nova.db.host import host_cleanups
from nova.db.server.transfers import WholeServer
from nova.db.sql.engine import Connection
from nova.model.server.servers import ServerMemo


def _came_back(tx: Connection, op: Op, whole: WholeServer) -> WholeServer:
    """Return the rows for the source's cell, where the guest keeps its name. It is at the source again."""
    held = host_cleanups.held(tx, moves.source(op).host, op.uuid) or {}
    return whole._replace(server={**whole.server, **moves.row_at(op, moves.source(op)),
                                  "instance_name": held.get("instance_name")})


def _return(step: CellStep, deps: Deps, op: Op, direction: str) -> None:
    """Move the server to the source's cell. Raises cell.Elsewhere if the operation continues in that cell, and
    daemon.WorkflowNotYet while a cell does not answer: only the source has the disks."""
    with failures.replaced(errors.Unavailable, lambda error: errors.daemon.WorkflowNotYet(what=error.message)):
        if op.uuid not in step.arrived(deps, [op]):
            raise errors.cell.Elsewhere()
        source_cell = op.asked(MoveArguments).source_cell
        if not source_cell or source_cell == deps.cell_uuid:
            return
        step.move(deps, deps.cells.named(source_cell), [op], direction)
    with contextlib.suppress(errors.NovaError):  # the answer to a heartbeat repeats it
        deps.compute.look_for_debts(op.server.host or "")
    raise errors.cell.Elsewhere()


def forget_departure(tx: Connection, op: Op) -> None:
    """Drop the record of the guest at the source, in the transaction that journals the server's return."""
    if op.asked(MoveArguments).source_cell:
        host_cleanups.drop_held(tx, op.uuid)


def check_kept(deps: Deps, op: Op) -> None:
    """Check that the source, which is in another cell, answers and has the guest by the records of its cell. Raises
    move.SourceFailed."""
    host = moves.source(op).host
    with failures.replaced(errors.NovaError, lambda error: errors.move.SourceFailed(
            host=host, server=op.uuid, why=error.message), but=errors.Overtaken):
        cell = deps.cells.named(op.asked(MoveArguments).source_cell or "")
        with cell.cell.reading() as tx:
            if host_cleanups.held(tx, host, op.uuid) is None:
                raise errors.move.NothingAside(uuid=op.uuid)
        cell.compute.ping(host)


class MoveToCell(CellStep):
    """Move the server to the cell of the host that it took. Undo: move it back."""

    uses = (*CellStep.uses, "compute")

    def applies(self, op: Op) -> bool:
        """True if the host is in another cell."""
        return op.progress.to_cell is not None

    def do(self, deps: Deps, ops: Sequence[Op]) -> Sequence[Result]:
        return [self._go(deps, op) for op in ops]

    def _go(self, deps: Deps, op: Op) -> Result:
        if op.uuid not in self.arrived(deps, [op]):
            return errors.cell.Elsewhere()
        target = deps.cells.named(op.progress.to_cell or "")
        if target.cell_uuid == deps.cell_uuid:
            return STAYED
        if not target.cell.answers():  # the guest is off: it does not wait for the cell
            return errors.HostRefused(f"The cell of host {taken(op).host} does not answer.")
        self.move(deps, target, [op])
        return errors.cell.Elsewhere()

    def undo(self, deps: Deps, ops: Sequence[Op]) -> None:
        for op in ops:
            _return(self, deps, op, "undo")
            with deps.cell.reading() as tx:
                came_back = host_cleanups.held(tx, moves.source(op).host, op.uuid) is not None
            if came_back:
                op.note(left_cell=None, to_cell=None)

    def copied(self, tx: Connection, op: Op, whole: WholeServer) -> WholeServer:
        if op.entry.direction == "undo":
            return _came_back(tx, op, whole)
        memo = msgspec.structs.replace(op.server.memo or ServerMemo(), moved_cells=True)
        return whole._replace(server={**whole.server, "instance_name": None, "memo": memo})

    def left(self, tx: Connection, deps: Deps, op: Op) -> None:
        if deps.cell_uuid == op.asked(MoveArguments).source_cell:
            host_cleanups.hold(tx, cleanup_of(deps, op, moves.source(op).host))
        else:
            host_cleanups.add(tx, [cleanup_of(deps, op, taken(op).host)])


class ReturnToCell(CellStep):
    """Move the server back to the source's cell, to revert its move. This cannot be undone."""

    uses = (*CellStep.uses, "compute")
    repeats_on_bug = True

    def do(self, deps: Deps, ops: Sequence[Op]) -> Sequence[Result]:
        for op in ops:
            _return(self, deps, op, "do")
            deps.cell.transact(functools.partial(host_cleanups.drop_held, server_uuid=op.uuid))
        return [STAYED for _ in ops]

    def copied(self, tx: Connection, op: Op, whole: WholeServer) -> WholeServer:
        return _came_back(tx, op, whole)

    def left(self, tx: Connection, deps: Deps, op: Op) -> None:
        host_cleanups.add(tx, [cleanup_of(deps, op, op.asked(EndOfResize).destination)])
