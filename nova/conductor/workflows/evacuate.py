"""Evacuation: the server's host is down, and it is made anew on another. Only the record that the end of this writes
lets the old host remove what it has."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from nova import errors
from nova.conductor import steps
from nova.conductor.engine.workflow import Op, Retry, Workflow
from nova.conductor.steps import evacuation, moves, moving
from nova.db import migrations, services
from nova.db.engine import Connection
from nova.db.states import PerServer
from nova.model import migrations as status
from nova.model.states import TaskState, VmState


def evacuated(ops: Sequence[Op]) -> Mapping[str, Any]:
    """It is the destination's from here on. What was off stays off, and so does what was asked to."""
    places = {op.uuid: moving.row_at(op, moving.destination(op)) for op in ops}
    off = {op.uuid for op in ops if not moving.runs(op) or op.entry.arguments.get("stay_off")}
    return {**{name: PerServer({uuid: place[name] for uuid, place in places.items()})
               for name in ("host", "node", "availability_zone")},
            "vm_state": PerServer({op.uuid: (VmState.STOPPED if op.uuid in off else VmState.ACTIVE).value
                                   for op in ops}),
            "power_state": PerServer({op.uuid: op.data.get("power_state", 0) for op in ops}),
            "memo": PerServer({op.uuid: moves.remembered(op, vm_state=None, move=None) for op in ops})}


def closed(tx: Connection, op: Op, error: errors.NovaError | None) -> Mapping[str, Any]:
    """The old host owes the removal of its guest; its claim there stays until that is paid."""
    move = moving.move_of(op)
    if error is not None:
        migrations.advance(tx, move, status=status.FAILED)
        return {}
    arguments = {"instance_name": op.entry.arguments["instance_name"], "operation_id": str(op.entry.id), "move": move}
    if op.data.get("shared"):
        arguments["keep_disks"] = "1"
    services.owe(tx, [{"host": moving.source(op).host, "server_uuid": op.uuid, "epoch": op.entry.epoch,
                       "step": "destroy_guests", "arguments": arguments}])
    migrations.advance(tx, move, status=status.DONE)
    return {}


take_host = steps.TakeNextHost()
EVACUATE = Workflow(
    "evacuate",
    evacuation.Evacuate(),                                    # what it overtook is settled, without the old host
    steps.SelectHosts(),
    take_host,                                                # --- what depends on the host stands below ---
    moves.ClaimMove(),                                        # both ends are claimed; undo: the old one alone
    evacuation.RebuildAtDestination(task=TaskState.REBUILD_SPAWNING),  # undo: destroyed there, or owed
    retry=Retry(back_to=take_host, on=(errors.HostRefused, errors.ClaimConflict, errors.Unavailable)),
    again_on=(errors.Unavailable,),
    ending=evacuated,
    closing=closed,
)

__all__ = ["EVACUATE"]
