"""Resize and cold migration, and their confirming and reverting."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from nova import errors
from nova.conductor.engine.deps import World
from nova.conductor.engine.workflow import NotYet, Op
from nova.conductor.steps import moving
from nova.conductor.steps.guests import NoAnswer
from nova.conductor.steps.moves import MoveStep, _each, ask, ask_source, is_up, owe_removal, place, rebind, remove
from nova.conductor.steps.placement import owed
from nova.db import ledger, migrations
from nova.db.engine import Connection
from nova.model.migrations import CONFIRMING, FINISHED, MIGRATING, POST_MIGRATING, REVERTING
from nova.model.orders import GuestOnSource


class LeaveSource(MoveStep):
    """The guest is stopped and put aside, and its disks are offered; undo: it is taken back, and runs if it did."""

    status, event = MIGRATING, "compute_resize_instance"

    def act(self, world: World, op: Op) -> Mapping[str, Any]:
        outcome = ask_source(world, "leave_guests", op, moving.order_at(world, op, moving.source(op)))
        return {"offer": moving.kept(outcome.source)}

    def undo(self, world: World, ops: Sequence[Op]) -> None:
        for op in ops:
            take_back(world, op)


def take_back(world: World, op: Op) -> None:
    """The source's guest as it was. While its host does not answer this raises: nobody else has the disks, so that
    the operation waits for it. What the host says went wrong there leaves the server in ERROR."""
    end = moving.source(op)
    try:
        ask(world, "return_guests", end.host, op, moving.move_order(world, op, end))
    except (errors.Unavailable, errors.HostRefused, errors.Overtaken):
        raise
    except errors.NovaError as error:
        op.change(data={**op.data, "stranded": error.message})


class FetchDisks(MoveStep):
    """The destination copies what the source offers; undo: it removes that. On one host what was put aside is copied,
    and taking it back removes the copy."""

    status = POST_MIGRATING

    def act(self, world: World, op: Op) -> Mapping[str, Any]:
        order = moving.move_order(world, op, moving.destination(op), _offer(op))
        ask(world, "fetch_guests", op.data["host"], op, order)
        return {}

    def undo(self, world: World, ops: Sequence[Op]) -> None:
        for op in ops:
            if op.data.get("host") and not moving.same_host(op):
                remove(world, op, moving.destination(op))


def _offer(op: Op) -> GuestOnSource | None:
    return None if moving.same_host(op) else msgspec.convert(op.data["offer"], GuestOnSource)


class FinishResize(MoveStep):
    """The server is the destination's, as what it is to be; undo: the source's, as what it was."""

    event = "compute_finish_resize"

    def row(self, tx: Connection, world: World, op: Op) -> Mapping[str, Any]:
        return place(tx, world, op, moving.destination(op))

    def act(self, world: World, op: Op) -> Mapping[str, Any]:
        rebind(world, op, moving.destination(op))
        order = moving.first_order(world, op, moving.destination(op), _offer(op))
        outcome = ask(world, "finish_guests", op.data["host"], op, order)
        return {"power_state": int(outcome.power_state)}

    def undo_within(self, tx: Connection, world: World, ops: Sequence[Op]) -> Mapping[str, Any]:
        return _each(ops, lambda op: place(tx, world, op, moving.source(op)))

    def undo(self, world: World, ops: Sequence[Op]) -> None:
        for op in ops:
            rebind(world, op, moving.source(op))


# -- confirming

class ForgetSource(MoveStep):
    """What was put aside goes. A source that can't be told owes it; of one host, the confirming fails and is repeated:
    it would take the server with it."""

    status, event, decisive = CONFIRMING, "compute_confirm_resize", True

    def act(self, world: World, op: Op) -> Mapping[str, Any]:
        end = moving.source(op)
        if end.host != op.server.host and not is_up(world, end.host):  # known to be down: nobody waits for its answer
            owe_removal(world, op, end, "it is down")
            return {"committed": True}
        try:
            ask(world, "forget_guests", end.host, op, moving.order_at(world, op, end))
        except errors.Overtaken:
            raise
        except errors.NovaError:
            if end.host == op.server.host:
                raise
            remove(world, op, end)
        return {"committed": True}  # there is nothing left to revert to

    def undo_within(self, tx: Connection, world: World, ops: Sequence[Op]) -> Mapping[str, Any]:
        for op in ops:
            migrations.advance(tx, moving.move_of(op), status=FINISHED)
        return {}


# -- reverting

class FindAtSource(MoveStep):
    """What was put aside is still there: before this is known nothing is removed anywhere. (Who leaves a host twice is
    told the same; on one host the taking back looks for itself.)"""

    status = REVERTING

    def act(self, world: World, op: Op) -> Mapping[str, Any]:
        if not _within_one_host(op):
            ask_source(world, "leave_guests", op, moving.order_at(world, op, moving.source(op)))
        return {}


class RevertAtDestination(MoveStep):
    """Nothing is left where the server came to. On one host this is the next step's work."""

    event, decisive = "compute_revert_resize", True

    def act(self, world: World, op: Op) -> Mapping[str, Any]:
        arguments = op.entry.arguments
        flavor = moving.source(op).flavor
        if not _within_one_host(op):
            remove(world, op, moving.End(arguments["destination"], arguments["destination_node"], None, flavor))
        return {"committed": True}


def _within_one_host(op: Op) -> bool:
    return bool(op.entry.arguments["destination"] == op.entry.arguments["source"])


class ReturnToSource(MoveStep):
    """The server is what it was, where it was; its new place is free, and what quota counts is the old flavor."""

    event = "compute_finish_revert_resize"

    def row(self, tx: Connection, world: World, op: Op) -> Mapping[str, Any]:
        return place(tx, world, op, moving.source(op))

    def act(self, world: World, op: Op) -> Mapping[str, Any]:
        end = moving.source(op)
        self._give_back(world, op)
        rebind(world, op, end)
        try:
            outcome = ask(world, "return_guests", end.host, op, moving.move_order(world, op, end))
        except NoAnswer:
            raise NotYet(what=f"host {end.host}") from None  # there is no way back to the destination
        return {"power_state": int(outcome.power_state)}

    @staticmethod
    def _give_back(world: World, op: Op) -> None:
        kept = owed(world, [op]).get(op.uuid, ())
        flavor = moving.source(op).flavor

        def write(tx: Connection) -> list[int]:
            changed = ledger.undo_move(tx, op.uuid, op.entry.epoch, moving.move_of(op), kept)
            ledger.count_as(tx, op.uuid, op.entry.epoch, moving.counted(op.server, flavor))
            ledger.describe(tx, op.uuid, flavor)
            return changed
        world.feed.after_release(world.api.transact(write))


__all__ = ["FetchDisks", "FindAtSource", "FinishResize", "ForgetSource", "LeaveSource", "ReturnToSource",
           "RevertAtDestination", "take_back"]
