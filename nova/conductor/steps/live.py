"""Live migration: the destination prepares, the source sends, the destination keeps what has arrived."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from nova import errors
from nova.conductor.engine.deps import World
from nova.conductor.engine.workflow import NotYet, Op
from nova.conductor.steps import moving
from nova.conductor.steps.guests import NoAnswer, fence
from nova.conductor.steps.moves import MoveStep, SourceFailed, _each, ask, ask_source, place, rebind, remove
from nova.db.engine import Connection
from nova.model.migrations import POST_MIGRATING, RUNNING
from nova.model.orders import GuestArrival, GuestOnSource, LiveOrder


class DescribeGuest(MoveStep):
    """What the destination must know of the guest."""

    event = "compute_check_can_live_migrate_source"

    def act(self, world: World, op: Op) -> Mapping[str, Any]:
        outcome = ask_source(world, "describe_guests", op, moving.order_at(world, op, moving.source(op)))
        return {"offer": moving.kept(outcome.source)}


class PrepareLiveMigration(MoveStep):
    """The destination compares processors, makes room and plugs; undo: nothing of it is left there."""

    event, undo_event = "compute_pre_live_migration", "compute_rollback_live_migration_at_destination"

    def act(self, world: World, op: Op) -> Mapping[str, Any]:
        arguments = op.entry.arguments
        arriving = world.networking.prepare_arrival(op, op.data["host"])
        order = moving.first_order(world, op, moving.destination(op), msgspec.convert(op.data["offer"], GuestOnSource),
                                   block=arguments.get("block"), over_commit=bool(arguments.get("over_commit")))
        order = msgspec.structs.replace(order, build=msgspec.structs.replace(order.build, interfaces=arriving))
        outcome = ask(world, "prepare_arrivals", op.data["host"], op, order)
        arrival = outcome.arrival or GuestArrival()
        return {"arrival": moving.kept(arrival), "shared": arrival.shared}

    def undo(self, world: World, ops: Sequence[Op]) -> None:
        """Where it is not known whether both hosts see the same disks, they are not touched: they may be the guest's
        only ones."""
        for op in ops:
            if op.data.get("host"):
                remove(world, op, moving.destination(op), keep_disks=op.data.get("shared") is not False)
                world.networking.abandon_arrival(op, op.data["host"])


class MigrateGuests(MoveStep):
    """The source sends the guest: the point of no return. A source that says nothing may have done it all the same:
    the destination knows."""

    status, event, decisive = RUNNING, "compute_live_migration", True

    def act(self, world: World, op: Op) -> Mapping[str, Any]:
        end = moving.source(op)
        order = LiveOrder(server_uuid=op.uuid, instance_name=op.entry.arguments["instance_name"], fence=fence(op),
                          arrival=msgspec.convert(op.data["arrival"], GuestArrival),
                          build=moving.build_at(world, op, end))
        try:
            ask(world, "migrate_guests", end.host, op, order)
        except errors.Overtaken:
            raise
        except errors.Unavailable as error:  # of the host itself, or of the hypervisor there
            return self._without_answer(world, op, error)
        except errors.NovaError as error:
            raise SourceFailed(host=end.host, server=op.uuid, why=error.message) from None
        return {"committed": True}

    def _without_answer(self, world: World, op: Op, error: errors.NovaError) -> Mapping[str, Any]:
        """From here on the source may not hand over any more; whether it has is asked after that."""
        op.entry = world.runner.journal.leave_behind(op.entry, lambda tx: None)
        host = op.data["host"]
        try:
            outcome = ask(world, "land_guests", host, op, moving.move_order(world, op, moving.destination(op)))
        except (NoAnswer, errors.Conflict):  # away as well; or it still arrives
            raise NotYet(what=f"host {moving.source(op).host} or {host}") from None
        except errors.NotFound:
            raise SourceFailed(host=moving.source(op).host, server=op.uuid, why=error.message) from None
        return {"committed": True, "power_state": int(outcome.power_state)}

    def undo(self, world: World, ops: Sequence[Op]) -> None:
        """What is still sent, whatever the source said, is not sent any more."""
        for op in ops:
            with contextlib.suppress(errors.NovaError):
                world.compute.abort_migration(moving.source(op).host, op.uuid, op.entry.epoch)


class LostOnTheWay(errors.Bug):
    code = "move.lost"
    message = ("The source says that {server} runs on host {host}, which does not have it. Its disks on the source "
               "were left as they are.")


class ArriveAtDestination(MoveStep):
    """The server is the destination's. There is no way back, but for a guest that is not there at all."""

    status, event = POST_MIGRATING, "compute_post_live_migration_at_destination"

    def row(self, tx: Connection, world: World, op: Op) -> Mapping[str, Any]:
        return place(tx, world, op, moving.destination(op))

    def act(self, world: World, op: Op) -> Mapping[str, Any]:
        rebind(world, op, moving.destination(op))
        host = op.data["host"]
        try:
            outcome = ask(world, "land_guests", host, op, moving.move_order(world, op, moving.destination(op)))
        except NoAnswer:
            raise NotYet(what=f"host {host}") from None
        except errors.Conflict:
            raise NotYet(what=f"the guest's arrival on host {host}") from None
        except errors.NotFound:
            error = LostOnTheWay(server=op.uuid, host=host)
            op.change(data={**op.data, "stranded": error.message, "committed": False})
            raise error from None
        except errors.Overtaken:
            raise
        except errors.NovaError as error:  # it runs there, whatever is wrong with it
            return {"stranded": error.message}
        return {"power_state": int(outcome.power_state)}

    def undo_within(self, tx: Connection, world: World, ops: Sequence[Op]) -> Mapping[str, Any]:
        return _each(ops, lambda op: place(tx, world, op, moving.source(op)))

    def undo(self, world: World, ops: Sequence[Op]) -> None:
        for op in ops:
            rebind(world, op, moving.source(op))


class CleanSource(MoveStep):
    """Nothing is left where the server was; but disks that the destination sees too are its own now."""

    def act(self, world: World, op: Op) -> Mapping[str, Any]:
        remove(world, op, moving.source(op), keep_disks=bool(op.data.get("shared")))
        return {}


__all__ = ["ArriveAtDestination", "CleanSource", "DescribeGuest", "MigrateGuests", "PrepareLiveMigration"]
