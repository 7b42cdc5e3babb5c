"""The end of a resize or cold migration: a confirm, or a revert."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from nova import errors, failures
from nova.conductor import steps, zones
from nova.conductor.actions.move_requests import base
from nova.conductor.engine.begin import builtins
from nova.conductor.engine.deps import Deps
from nova.conductor.engine.operation import Op
from nova.conductor.engine.workflow import Workflow
from nova.conductor.steps import move_claims, moves
from nova.conductor.steps.cell_moves import ReturnToCell, check_kept
from nova.conductor.steps.cleanups import clean_up_elsewhere, is_elsewhere
from nova.conductor.steps.guests import ORDERS
from nova.conductor.steps.moves import EndOfResize, MoveArguments, MoveStep, ask, ask_source, place, rebind, remove
from nova.conductor.steps.placement import cleanup_hosts
from nova.db.host import services
from nova.db.quota import ledger
from nova.db.server import migrations, operation_arguments, servers, states
from nova.db.server.states import PerServer
from nova.db.sql.engine import Connection
from nova.model.server import migrations as status
from nova.model.server.migrations import CONFIRMING, FINISHED, REVERTING
from nova.model.server.servers import ServerMemo
from nova.model.server.states import PowerState, TaskState, VmState
from nova.rpc.contracts.compute import ComputeRPC


def ending(deps: Deps, tx: Connection, entry: states.Entry) -> states.Entry:
    """Return the entry of a confirm or revert, with the data of the move added. Raises move.ResizeNoRecord, and
    move.SourceDown if the source of a revert is down."""
    row = servers.rows_of(tx, [entry.server_uuid])[entry.server_uuid]
    memo = row.memo or ServerMemo()
    move = migrations.by_uuid(tx, memo.move) if memo.move else None
    if move is None or move.status not in (status.FINISHED, status.CONFIRMING, status.REVERTING) or \
            move.old_flavor is None or not move.source_compute:
        raise errors.move.ResizeNoRecord(server=entry.server_uuid)
    cell = deps.cells.of_host_outside(deps.cell_uuid, move.source_compute) if memo.moved_cells else None
    if entry.action == "revertResize" and not _is_up(cell or deps, tx if cell is None else None, move.source_compute):
        raise errors.move.SourceDown(host=move.source_compute)
    metadata, _tags = servers.children(tx, [row.uuid])
    ran = VmState.ACTIVE if row.power_state == PowerState.RUNNING else VmState.STOPPED
    zone = zones.of_hosts(deps, [move.source_compute]).get(move.source_compute)
    return operation_arguments.argue(tx, entry, builtins(EndOfResize(**{
        **base(deps, row), "move": move.uuid, "source": move.source_compute, "source_node": move.source_node or "",
        "source_zone": zone or deps.settings.default_availability_zone, "old_flavor": move.old_flavor,
        "destination": row.host, "destination_node": row.node or "", "metadata": metadata.get(row.uuid, {}),
        "vm_state": memo.vm_state or ran.value, "source_cell": cell.cell_uuid if cell is not None else None})))


def _is_up(deps: Deps, tx: Connection | None, host: str) -> bool:
    """Return whether the host is up. ``tx`` None: it is in another cell than the server, whose database is read."""
    if tx is not None:
        return bool(services.host_up(tx, host, deps.settings.service_down_time))
    return moves.host_is_up(deps, host)


ENDINGS = {"confirmResize": ending, "revertResize": ending}


# -- confirm

class CleanUpSource(MoveStep):
    """Remove the guest that was set aside. If the source does not answer, or is in another cell, this becomes a pending
    cleanup; within one host the confirm fails instead and is repeated, because such a cleanup would remove the server
    too."""

    formerly = "ForgetSource"
    uses = (*ORDERS, "journal")
    status, event, repeats_on_bug = CONFIRMING, "compute_confirm_resize", True

    def act(self, deps: Deps, op: Op) -> Mapping[str, object]:
        end = moves.source(op)
        if is_elsewhere(deps, end.host):
            clean_up_elsewhere(deps, op, end.host)
            return {"committed": True}
        if end.host != op.server.host and not moves.host_is_up(deps, end.host):  # known to be down: do not wait for it
            moves.add_removal_cleanup(deps, op, end, "it is down")
            return {"committed": True}
        try:
            ask(deps, ComputeRPC.forget_guests, end.host, op, moves.order_at(deps, op, end))
        except errors.Overtaken:
            raise
        except errors.NovaError:
            if end.host == op.server.host:
                raise
            remove(deps, op, end)
        return {"committed": True}  # a revert is no longer possible

    def undo_within(self, tx: Connection, deps: Deps, ops: Sequence[Op]) -> Mapping[str, object]:
        for op in ops:
            migrations.advance(tx, moves.move_of(op), status=FINISHED)
        return {}


# -- revert

class CheckSource(MoveStep):
    """Check that the guest that was set aside exists before anything is removed; within one host the restore does."""

    formerly = "FindAtSource"
    uses = ORDERS
    status = REVERTING

    def act(self, deps: Deps, op: Op) -> Mapping[str, object]:
        if op.asked(EndOfResize).source_cell:
            check_kept(deps, op)
        elif not _within_one_host(op):
            ask_source(deps, ComputeRPC.leave_guests, op, moves.order_at(deps, op, moves.source(op)))
        return {}


class RevertAtDestination(MoveStep):
    """Remove the guest from the destination. Within one host the next step does that."""

    uses = (*ORDERS, "journal")
    event, repeats_on_bug = "compute_revert_resize", True

    def act(self, deps: Deps, op: Op) -> Mapping[str, object]:
        asked = op.asked(EndOfResize)
        if not _within_one_host(op):
            remove(deps, op, moves.MoveEnd(asked.destination, asked.destination_node, None, asked.old_flavor))
        return {"committed": True}


def _within_one_host(op: Op) -> bool:
    asked = op.asked(EndOfResize)
    return asked.destination == asked.source


class RevertSource(MoveStep):
    """Restore the server at the source; release its new claim, and count the old flavor against quota."""

    formerly = "ReturnToSource"
    uses = (*ORDERS, "feed", "networking")
    event = "compute_finish_revert_resize"

    def row(self, tx: Connection, deps: Deps, op: Op) -> Mapping[str, object]:
        return place(tx, deps, op, moves.source(op))

    def act(self, deps: Deps, op: Op) -> Mapping[str, object]:
        end = moves.source(op)
        self._give_back(deps, op)
        rebind(deps, op, end)
        # the destination's guest is gone
        with failures.replaced(errors.host.NoAnswer, lambda _: errors.daemon.WorkflowNotYet(what=f"host {end.host}")):
            outcome = ask(deps, ComputeRPC.return_guests, end.host, op, moves.move_order(deps, op, end))
        return {"power_state": int(outcome.power_state)}

    @staticmethod
    def _give_back(deps: Deps, op: Op) -> None:
        kept = cleanup_hosts(deps, [op]).get(op.uuid, ())
        flavor = moves.source(op).flavor

        def write(tx: Connection) -> list[int]:
            changed = ledger.undo_move(tx, op.uuid, op.entry.epoch, moves.move_of(op), kept)
            ledger.count_as(tx, op.uuid, op.entry.epoch, moves.counted(op.server, flavor))
            ledger.describe(tx, op.uuid, flavor)
            return changed
        deps.feed.after_release(deps.api.transact(write))


def settled(ops: Sequence[Op]) -> Mapping[str, object]:
    """Restore the server's state before the move, and clear the move from its memo."""
    found: dict[str, Any] = {
        "vm_state": PerServer({op.uuid: op.asked(MoveArguments).vm_state for op in ops}),
        "memo": PerServer({op.uuid: moves.remembered(op, vm_state=None, move=None) for op in ops})}
    power = {op.uuid: op.progress.power_state for op in ops if op.progress.power_state is not None}
    return {**found, "power_state": PerServer(power)} if power else found


def confirmed(tx: Connection, op: Op, error: errors.NovaError | None) -> Mapping[str, object]:
    """Set the migration to CONFIRMED; after a failure back to FINISHED, so that it can be confirmed again."""
    migrations.advance(tx, moves.move_of(op), status=status.FINISHED if error else status.CONFIRMED)
    return {}


def reverted(tx: Connection, op: Op, error: errors.NovaError | None) -> Mapping[str, object]:
    """Set the migration to REVERTED or ERROR; to FINISHED after a failure before any removal, for another attempt."""
    again = error is not None and all(event.step != "RevertAtDestination" for event in op.entry.history)
    migrations.advance(tx, moves.move_of(op), status=status.FINISHED if again else
                       status.ERROR if error else status.REVERTED)
    return {"vm_state": VmState.RESIZED.value} if again else {}


CONFIRM_RESIZE = Workflow(
    "confirmResize",
    CleanUpSource(task=TaskState.RESIZE_CONFIRMING),          # remove the old guest, or pending cleanup
    move_claims.EndMove(),                                    # release the old claim; quota: the new flavor
    again_on=(errors.Unavailable,),
    ending=settled,
    closing=confirmed,
    asks=EndOfResize,
)

REVERT_RESIZE = Workflow(
    "revertResize",
    CheckSource(),                                            # check that the old guest exists
    RevertAtDestination(),                                    # remove the new guest, or pending cleanup
    ReturnToCell(when="source_cell"),                         # of the source, if it is another
    moves.ConnectAtSource(),                                  # volumes; cannot be undone from here on
    RevertSource(),                                           # restore the row, the claims and the guest
    steps.MoveVolumes(),                                      # revoke the destination's access
    ending=settled,
    closing=reverted,
    asks=EndOfResize,
)
