"""Live migration: the guest runs all the time, here or there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from nova import errors
from nova.conductor import steps
from nova.conductor.engine.workflow import Op, Retry, Workflow
from nova.conductor.steps import live, moves, moving
from nova.db import actions, migrations
from nova.db.engine import Connection
from nova.db.states import PerServer
from nova.model import migrations as status
from nova.model.base import utcnow
from nova.model.servers import Fault
from nova.model.states import VmState


def arrived(ops: Sequence[Op]) -> Mapping[str, Any]:
    """In the state it was; but a guest that its new host could not make its own is in ERROR there."""
    changes: dict[str, Any] = {"memo": PerServer({op.uuid: moves.remembered(op, vm_state=None, move=None)
                                                  for op in ops})}
    power = {op.uuid: op.data["power_state"] for op in ops if "power_state" in op.data}
    stranded = {op.uuid: op.data["stranded"] for op in ops if op.data.get("stranded")}
    if power:
        changes["power_state"] = PerServer(power)
    if stranded:
        changes["vm_state"] = PerServer(dict.fromkeys(stranded, VmState.ERROR.value))
        changes["fault"] = PerServer({uuid: Fault(message=why[:255], details=why, created_at=utcnow())
                                      for uuid, why in stranded.items()})
    return changes


def closed(tx: Connection, op: Op, error: errors.NovaError | None) -> Mapping[str, Any]:
    """Cancelled is what somebody asked to be stopped, and was."""
    if error is None:
        migrations.advance(tx, moving.move_of(op), status=status.COMPLETED)
        return {}
    cancelled = actions.any_since(tx, op.uuid, "live_migration_cancel", op.entry.id)
    migrations.advance(tx, moving.move_of(op), status=status.CANCELLED if cancelled else status.ERROR)
    if op.committed:  # it runs there, and nothing of that could be undone: the next move settles what is left
        return {**moving.row_at(op, moving.destination(op)), "vm_state": VmState.ERROR.value}
    return {"vm_state": VmState.ERROR.value} if op.data.get("stranded") else {}


take_host = steps.TakeNextHost()
LIVE_MIGRATE = Workflow(
    "live-migration",
    moves.Settle(event="conductor_live_migrate_instance"),    # what overtaken moves left is over
    steps.SelectHosts(),
    take_host,                                                # --- what depends on the host stands below ---
    moves.ClaimMove(),                                        # both ends are claimed; undo: the old one alone
    moves.CheckDestination(),                                 # it answers
    live.DescribeGuest(),                                     # the source says what there is to come
    live.PrepareLiveMigration(),                              # the destination is ready; undo: destroyed, or owed
    live.MigrateGuests(),                                     # the point of no return
    live.ArriveAtDestination(),                               # the row is the destination's, and so is the guest
    live.CleanSource(),                                       # nothing is left there, or it is owed
    moves.EndMove(),                                          # the old place is free
    retry=Retry(back_to=take_host, on=(errors.HostRefused, errors.ClaimConflict, errors.Unavailable)),
    again_on=(errors.Unavailable,),
    ending=arrived,
    closing=closed,
)

__all__ = ["LIVE_MIGRATE"]
