"""Evacuation: a server is made anew elsewhere, without a word to the host that it was on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from nova.conductor.engine.deps import World
from nova.conductor.engine.workflow import Op
from nova.conductor.steps import moving
from nova.conductor.steps.guests import fence
from nova.conductor.steps.moves import AskDestination, Settle, ask, rebind, remove
from nova.db.engine import Connection
from nova.model.migrations import PRE_MIGRATING
from nova.model.orders import RebuildOrder


class Evacuate(Settle):
    """What the evacuation overtook is settled, as far as that is possible without the server's own host."""

    event = "rebuild_server"
    source_answers = False


class RebuildAtDestination(AskDestination):
    """The server is made at the destination: from its disks where the storage is shared, else from its image. It is the
    destination's when all this ends well: until then another evacuation may overtake it. Undo: nothing of it is left
    there but disks that may be its only ones."""

    status, event = PRE_MIGRATING, "compute_rebuild_instance"

    def row(self, tx: Connection, world: World, op: Op) -> Mapping[str, Any]:
        world.networking.follow(tx, op, op.data["host"])
        return {}

    def act(self, world: World, op: Op) -> Mapping[str, Any]:
        rebind(world, op, moving.destination(op))
        shared = op.entry.arguments.get("on_shared_storage")
        build = msgspec.structs.replace(moving.build_at(world, op, moving.destination(op)),
                                        admin_password=op.secrets.get("admin_password"))
        order = RebuildOrder(server_uuid=op.uuid, fence=fence(op), build=build, keep_disks=shared,
                             start=moving.runs(op) and not op.entry.arguments.get("stay_off"))
        outcome = ask(world, "rebuild_guests", op.data["host"], op, order)
        if shared is None:
            shared = outcome.arrival is not None and outcome.arrival.shared
        return {"power_state": int(outcome.power_state), "shared": shared}

    def undo_within(self, tx: Connection, world: World, ops: Sequence[Op]) -> Mapping[str, Any]:
        for op in ops:
            world.networking.follow(tx, op, moving.source(op).host)
        return {}

    def undo(self, world: World, ops: Sequence[Op]) -> None:
        for op in ops:
            if op.data.get("host"):
                apart = op.data.get("shared") is False or op.entry.arguments.get("on_shared_storage") is False
                remove(world, op, moving.destination(op), keep_disks=not apart)
                rebind(world, op, moving.source(op))


__all__ = ["Evacuate", "RebuildAtDestination"]
