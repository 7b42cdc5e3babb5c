"""Resize, and cold migration: a resize without another flavor. Then confirmed or reverted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from nova import errors
from nova.conductor import steps
from nova.conductor.engine.workflow import Op, Retry, Workflow
from nova.conductor.steps import cold_moves, moves, moving
from nova.db import migrations
from nova.db.engine import Connection
from nova.db.states import PerServer
from nova.model import migrations as status
from nova.model.states import TaskState, VmState


def moved(ops: Sequence[Op]) -> Mapping[str, Any]:
    """RESIZED, until somebody confirms or reverts it: for that the server remembers what it was."""
    return {"power_state": PerServer({op.uuid: op.data.get("power_state", 0) for op in ops}),
            "memo": PerServer({op.uuid: moves.remembered(op, vm_state=op.entry.arguments["vm_state"],
                                                         move=moving.move_of(op)) for op in ops})}


def closed(tx: Connection, op: Op, error: errors.NovaError | None) -> Mapping[str, Any]:
    migrations.advance(tx, moving.move_of(op), status=status.ERROR if error else status.FINISHED)
    return {"vm_state": VmState.ERROR.value} if op.data.get("stranded") else {}


def _cold(action: str) -> Workflow:
    take_host = steps.TakeNextHost()
    return Workflow(
        action,
        moves.CountResize(when="flavor"),                         # quota: the larger of both; undo: the old flavor
        moves.Settle(event="cold_migrate"),                       # what overtaken moves left is over
        steps.SelectHosts(),
        take_host,                                                # --- what depends on the host stands below ---
        moves.ClaimMove(),                                        # both ends are claimed; undo: the old one alone
        moves.PrepareResize(),                                    # the destination answers
        cold_moves.LeaveSource(task=TaskState.RESIZE_MIGRATING),  # put aside; undo: taken back
        cold_moves.FetchDisks(task=TaskState.RESIZE_MIGRATED),    # copied; undo: destroyed, or owed
        cold_moves.FinishResize(task=TaskState.RESIZE_FINISH),    # the row is the destination's, and the guest is up
        retry=Retry(back_to=take_host, on=(errors.HostRefused, errors.ClaimConflict, errors.Unavailable)),
        again_on=(errors.Unavailable,),                           # a scheduler that is away is asked again
        ending=moved,
        closing=closed,
    )


RESIZE, MIGRATE = _cold("resize"), _cold("migrate")


def settled(ops: Sequence[Op]) -> Mapping[str, Any]:
    """The server is what it was before, and remembers no move."""
    found: dict[str, Any] = {
        "vm_state": PerServer({op.uuid: op.entry.arguments["vm_state"] for op in ops}),
        "memo": PerServer({op.uuid: moves.remembered(op, vm_state=None, move=None) for op in ops})}
    power = {op.uuid: op.data["power_state"] for op in ops if "power_state" in op.data}
    return {**found, "power_state": PerServer(power)} if power else found


def confirmed(tx: Connection, op: Op, error: errors.NovaError | None) -> Mapping[str, Any]:
    migrations.advance(tx, moving.move_of(op), status=status.FINISHED if error else status.CONFIRMED)
    return {}


def reverted(tx: Connection, op: Op, error: errors.NovaError | None) -> Mapping[str, Any]:
    """What failed before anything was removed can be tried again, or confirmed."""
    again = error is not None and all(event.step != "RevertAtDestination" for event in op.entry.history)
    migrations.advance(tx, moving.move_of(op), status=status.FINISHED if again else
                       status.ERROR if error else status.REVERTED)
    return {"vm_state": VmState.RESIZED.value} if again else {}


CONFIRM_RESIZE = Workflow(
    "confirmResize",
    cold_moves.ForgetSource(task=TaskState.RESIZE_CONFIRMING),    # what was put aside goes, or is owed
    moves.EndMove(),                                              # the old place is free; quota: the new flavor
    again_on=(errors.Unavailable,),
    ending=settled,
    closing=confirmed,
)

REVERT_RESIZE = Workflow(
    "revertResize",
    cold_moves.FindAtSource(),                                    # what there is to go back to
    cold_moves.RevertAtDestination(),                             # nothing is left there, or it is owed
    cold_moves.ReturnToSource(),                                  # the row, the claims, the guest: as before
    ending=settled,
    closing=reverted,
)
