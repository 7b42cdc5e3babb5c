"""Evacuation: rebuild a server on another host while its own host is down, without contacting that host."""

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
from nova.conductor.steps import move_claims, moves
from nova.conductor.steps.guests import ORDERS, fence
from nova.conductor.steps.moves import AskDestination, ask, rebind, remove
from nova.conductor.steps.placement import taken
from nova.db.host import host_cleanups
from nova.db.server import migrations
from nova.db.server.server_row import ServerRow
from nova.db.server.states import PerServer
from nova.db.sql.engine import Connection
from nova.model.guest.orders import RebuildOrder
from nova.model.server import migrations as kinds
from nova.model.server import migrations as status
from nova.model.server.migrations import PRE_MIGRATING
from nova.model.server.server_orders import EvacuateServer
from nova.model.server.states import TaskState, VmState
from nova.rpc.contracts.compute import ComputeRPC


class Evacuations:
    """The evacuation calls of ConductorRPC."""

    def __init__(self, deps: Deps) -> None:
        self.deps = deps

    def evacuate_server(self, order: EvacuateServer) -> None:
        """Start to evacuate a server whose host is down.

        Raises server.NotFound, server.WrongState; move.EvacuateHostInUse if the server's host is up; for the target
        host.NotFound, move.OwnHost, move.HostDown.
        """
        def check(tx: Connection, row: ServerRow) -> None:
            if host_up(self.deps, tx, row.host or ""):
                raise errors.move.EvacuateHostInUse(host=row.host)
            check_target(self.deps, tx, row, order.host, errors.host.NotFound)
        asked = {"host": order.host, "forced": order.force, "on_shared_storage": order.on_shared_storage,
                 "stay_off": order.stay_off}
        begin_move(self.deps,
                   MovePlan("evacuate", kinds.EVACUATION, kinds.ACCEPTED, order.uuid, Evacuation, asked, check),
                   {"admin_password": order.admin_password})


class Evacuation(moves.MoveArguments):
    """Arguments of an evacuation. ``on_shared_storage``: as the request states; None: the hosts detect it."""

    on_shared_storage: bool | None = None
    stay_off: bool = False


class Evacuate(move_claims.CleanUpEarlierMoves):
    """Finish the overtaken move, as far as possible without the server's own host."""

    event = "rebuild_server"
    source_answers = False


class RebuildAtDestination(AskDestination):
    """Rebuild the server at the destination: from its disks on shared storage, else from its image.

    It belongs to the destination only when the evacuation succeeds; until then another evacuation may overtake it.
    Undo: remove it there, but keep disks that may be its only ones.
    """

    uses = (*ORDERS, "journal", "networking")
    status, event = PRE_MIGRATING, "compute_rebuild_instance"

    def row(self, tx: Connection, deps: Deps, op: Op) -> Mapping[str, object]:
        deps.networking.follow(tx, op, taken(op).host)
        return {}

    def act(self, deps: Deps, op: Op) -> Mapping[str, object]:
        rebind(deps, op, moves.destination(op))
        shared = op.asked(Evacuation).on_shared_storage
        build = msgspec.structs.replace(moves.build_at(deps, op, moves.destination(op)),
                                        admin_password=op.secrets.get("admin_password"))
        order = RebuildOrder(server_uuid=op.uuid, fence=fence(op), build=build, keep_disks=shared,
                             start=moves.runs(op) and not op.asked(Evacuation).stay_off)
        outcome = ask(deps, ComputeRPC.rebuild_guests, taken(op).host, op, order)
        if shared is None:
            shared = outcome.arrival is not None and outcome.arrival.shared
        return {"power_state": int(outcome.power_state), "shared": shared}

    def undo_within(self, tx: Connection, deps: Deps, ops: Sequence[Op]) -> Mapping[str, object]:
        for op in ops:
            deps.networking.follow(tx, op, moves.source(op).host)
        return {}

    def undo(self, deps: Deps, ops: Sequence[Op]) -> None:
        for op in ops:
            if op.progress.host:
                apart = op.progress.shared is False or op.asked(Evacuation).on_shared_storage is False
                remove(deps, op, moves.destination(op), keep_disks=not apart)
                rebind(deps, op, moves.source(op))


def evacuated(ops: Sequence[Op]) -> Mapping[str, object]:
    """Assign the server to the destination. A server that was off, or with ``stay_off``, stays off."""
    places = {op.uuid: moves.row_at(op, moves.destination(op)) for op in ops}
    off = {op.uuid for op in ops if not moves.runs(op) or op.asked(Evacuation).stay_off}
    return {**{name: PerServer({uuid: place[name] for uuid, place in places.items()})
               for name in ("host", "node", "availability_zone")},
            "vm_state": PerServer({op.uuid: (VmState.STOPPED if op.uuid in off else VmState.ACTIVE).value
                                   for op in ops}),
            "power_state": PerServer({op.uuid: op.progress.power_state or 0 for op in ops}),
            "memo": PerServer({op.uuid: moves.remembered(op, vm_state=None, move=None) for op in ops})}


def closed(tx: Connection, op: Op, error: errors.NovaError | None) -> Mapping[str, object]:
    """Add a pending cleanup that removes the guest from the old host; its claim there stays until the cleanup is
    done."""
    move = moves.move_of(op)
    if error is not None:
        migrations.advance(tx, move, status=status.FAILED)
        return {}
    arguments = {"instance_name": op.asked(Evacuation).instance_name, "operation_id": str(op.entry.id), "move": move}
    if op.progress.shared:
        arguments["keep_disks"] = "1"
    host_cleanups.add(tx, [{"host": moves.source(op).host, "server_uuid": op.uuid, "epoch": op.entry.epoch,
                       "step": "destroy_guests", "arguments": arguments}])
    migrations.advance(tx, move, status=status.DONE)
    return {}


take_host = steps.SelectNextHost()
EVACUATE = Workflow(
    "evacuate",
    Evacuate(),                                               # finish the overtaken move, without the old host
    steps.SelectHosts(),
    take_host,                                                # --- the steps below depend on the host ---
    move_claims.ClaimMove(),                                  # claim both hosts; undo: only the old one
    steps.ConnectAtDestination(),                             # volumes; undo: only the old host's
    RebuildAtDestination(task=TaskState.REBUILD_SPAWNING),    # undo: destroy there, or pending cleanup
    steps.MoveVolumes(),                                      # revoke the old host's access
    retry=Retry(back_to=take_host, on=(errors.HostRefused, errors.ClaimConflict, errors.Unavailable)),
    again_on=(errors.Unavailable,),
    ending=evacuated,
    closing=closed,
    asks=Evacuation,
)
