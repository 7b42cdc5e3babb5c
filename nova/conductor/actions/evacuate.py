"""Evacuation: the server's host is down, and it is made anew on another, without a word to the host that it was on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from nova import errors
from nova.conductor import steps
from nova.conductor.actions.move_requests import (
    MovePlan,
    begin_move,
    check_target,
    host_up,
)
from nova.conductor.engine.deps import Deps
from nova.conductor.engine.operation import Op
from nova.conductor.engine.workflow import Retry, Workflow
from nova.conductor.steps import moves, moving
from nova.conductor.steps.guests import ORDERS, fence
from nova.conductor.steps.moves import AskDestination, CleanUpEarlierMoves, ask, rebind, remove
from nova.conductor.steps.placement import taken
from nova.db.host import services
from nova.db.server import migrations
from nova.db.server.server_row import ServerRow
from nova.db.server.states import PerServer
from nova.db.sql.engine import Connection
from nova.db.sql.types import AnyColumn
from nova.model.guest.orders import RebuildOrder
from nova.model.server import migrations as kinds
from nova.model.server import migrations as status
from nova.model.server.migrations import PRE_MIGRATING
from nova.model.server.server_orders import EvacuateServer
from nova.model.server.states import TaskState, VmState
from nova.rpc.contracts.compute import ComputeRPC


class Evacuations:
    """Calls of ConductorRPC."""

    def __init__(self, deps: Deps) -> None:
        self.deps = deps

    def evacuate_server(self, order: EvacuateServer) -> None:
        """server.NotFound, server.WrongState; move.EvacuateHostInUse: its host is up; of the target host.NotFound,
        move.OwnHost, move.HostDown."""
        def check(tx: Connection, row: ServerRow) -> None:
            if host_up(self.deps, tx, row.host or ""):
                raise errors.move.EvacuateHostInUse(host=row.host)
            check_target(self.deps, tx, row, order.host, errors.host.NotFound)
        asked = {"host": order.host, "forced": order.force, "on_shared_storage": order.on_shared_storage,
                 "stay_off": order.stay_off}
        begin_move(self.deps,
                   MovePlan("evacuate", kinds.EVACUATION, kinds.ACCEPTED, order.uuid, Evacuation, asked, check),
                   {"admin_password": order.admin_password})


class Evacuation(moving.MoveArguments):
    """What an evacuation is begun with. ``on_shared_storage``: as who asked said it; None: the hosts find out."""

    on_shared_storage: bool | None = None
    stay_off: bool = False


class Evacuate(CleanUpEarlierMoves):
    """What the evacuation overtook is settled, as far as that is possible without the server's own host."""

    event = "rebuild_server"
    source_answers = False


class RebuildAtDestination(AskDestination):
    """The server is made at the destination: from its disks where the storage is shared, else from its image. It is the
    destination's when all this ends well: until then another evacuation may overtake it. Undo: nothing of it is left
    there but disks that may be its only ones."""

    uses = (*ORDERS, "journal", "networking")
    status, event = PRE_MIGRATING, "compute_rebuild_instance"

    def row(self, tx: Connection, deps: Deps, op: Op) -> Mapping[str, AnyColumn]:
        deps.networking.follow(tx, op, taken(op).host)
        return {}

    def act(self, deps: Deps, op: Op) -> Mapping[str, AnyColumn]:
        rebind(deps, op, moving.destination(op))
        shared = op.asked(Evacuation).on_shared_storage
        build = msgspec.structs.replace(moving.build_at(deps, op, moving.destination(op)),
                                        admin_password=op.secrets.get("admin_password"))
        order = RebuildOrder(server_uuid=op.uuid, fence=fence(op), build=build, keep_disks=shared,
                             start=moving.runs(op) and not op.asked(Evacuation).stay_off)
        outcome = ask(deps, ComputeRPC.rebuild_guests, taken(op).host, op, order)
        if shared is None:
            shared = outcome.arrival is not None and outcome.arrival.shared
        return {"power_state": int(outcome.power_state), "shared": shared}

    def undo_within(self, tx: Connection, deps: Deps, ops: Sequence[Op]) -> Mapping[str, object]:
        for op in ops:
            deps.networking.follow(tx, op, moving.source(op).host)
        return {}

    def undo(self, deps: Deps, ops: Sequence[Op]) -> None:
        for op in ops:
            if op.progress.host:
                apart = op.progress.shared is False or op.asked(Evacuation).on_shared_storage is False
                remove(deps, op, moving.destination(op), keep_disks=not apart)
                rebind(deps, op, moving.source(op))


def evacuated(ops: Sequence[Op]) -> Mapping[str, object]:
    """It is the destination's from here on. What was off stays off, and so does what was asked to."""
    places = {op.uuid: moving.row_at(op, moving.destination(op)) for op in ops}
    off = {op.uuid for op in ops if not moving.runs(op) or op.asked(Evacuation).stay_off}
    return {**{name: PerServer({uuid: place[name] for uuid, place in places.items()})
               for name in ("host", "node", "availability_zone")},
            "vm_state": PerServer({op.uuid: (VmState.STOPPED if op.uuid in off else VmState.ACTIVE).value
                                   for op in ops}),
            "power_state": PerServer({op.uuid: op.progress.power_state or 0 for op in ops}),
            "memo": PerServer({op.uuid: moves.remembered(op, vm_state=None, move=None) for op in ops})}


def closed(tx: Connection, op: Op, error: errors.NovaError | None) -> Mapping[str, object]:
    """The old host owes the removal of its guest; its claim there stays until that is paid."""
    move = moving.move_of(op)
    if error is not None:
        migrations.advance(tx, move, status=status.FAILED)
        return {}
    arguments = {"instance_name": op.asked(Evacuation).instance_name, "operation_id": str(op.entry.id), "move": move}
    if op.progress.shared:
        arguments["keep_disks"] = "1"
    services.add_cleanups(tx, [{"host": moving.source(op).host, "server_uuid": op.uuid, "epoch": op.entry.epoch,
                       "step": "destroy_guests", "arguments": arguments}])
    migrations.advance(tx, move, status=status.DONE)
    return {}


take_host = steps.TakeNextHost()
EVACUATE = Workflow(
    "evacuate",
    Evacuate(),                                               # what it overtook is settled, without the old host
    steps.SelectHosts(),
    take_host,                                                # --- what depends on the host stands below ---
    moves.ClaimMove(),                                        # both ends are claimed; undo: the old one alone
    steps.ConnectAtDestination(),                             # volumes; undo: the old host's alone
    RebuildAtDestination(task=TaskState.REBUILD_SPAWNING),    # undo: destroyed there, or owed
    steps.MoveVolumes(),                                      # the old host may use none any more
    retry=Retry(back_to=take_host, on=(errors.HostRefused, errors.ClaimConflict, errors.Unavailable)),
    again_on=(errors.Unavailable,),
    ending=evacuated,
    closing=closed,
    asks=Evacuation,
)
