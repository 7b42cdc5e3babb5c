"""Shelving: a server leaves its host for an image, and comes back from it to any host."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from nova import errors
from nova.conductor.engine.deps import World
from nova.conductor.engine.orders import build_order
from nova.conductor.engine.workflow import NotYet, Op, Result, Step
from nova.conductor.steps.guests import BuildGuests, NoAnswer, NoHost, StopGuests, destroy, fence, owe_destroy
from nova.conductor.steps.images import ACTIVE, discard, offloading
from nova.conductor.steps.placement import owed
from nova.db import ledger
from nova.db.engine import Connection, DatabaseAway
from nova.db.states import PerServer
from nova.model.images import Image
from nova.model.orders import BuildOrder
from nova.model.servers import ServerMemo
from nova.model.states import PowerState, VmState

LOG = logging.getLogger(__name__)

_IN_MEMORY = (VmState.PAUSED.value, VmState.SUSPENDED.value)
_OFF: dict[str, Any] = {"host": None, "node": None, "availability_zone": None}


class NoShelvedImage(errors.Conflict):
    code = "server.no_shelved_image"
    message = "Instance {server} stays on its host: {reason}, and its disk is nowhere else."


class SetAsideGuests(StopGuests):
    """Stop what is to be shelved. Undo: what ran is started again; what was paused or suspended is off from now on, as
    its memory is gone."""

    def undo_within(self, tx: Connection, world: World, ops: Sequence[Op]) -> Mapping[str, Any]:
        lost = [op for op in ops if _has_stopped(op) and not offloading(op) and op.server.vm_state in _IN_MEMORY]
        return {"vm_state": PerServer(dict.fromkeys([op.uuid for op in lost], VmState.STOPPED.value))} if lost else {}

    def undo(self, world: World, ops: Sequence[Op]) -> None:
        for op in ops:
            if op.server.vm_state != VmState.ACTIVE.value or offloading(op):
                continue
            try:
                world.compute.start_guests(op.server.host, (self.order(world, op),))
            except errors.Overtaken:
                raise
            except errors.NovaError as error:  # its owner sees it stopped with the host's next report
                LOG.warning("a guest that could not be shelved is not started again: %s", error.message,
                            extra={"server": op.uuid})


def _has_stopped(op: Op) -> bool:
    return op.data.get("power_state") == int(PowerState.SHUTDOWN)


class StopIfThere(StopGuests):
    """Stop guests that their owners have deleted: a host that is away, or has none, is no reason to keep them."""

    def do(self, world: World, ops: Sequence[Op]) -> Sequence[Result]:
        try:
            results = super().do(world, ops)
        except errors.Unavailable as error:
            results = [error] * len(ops)
        return [self._tolerant(op, result) for op, result in zip(ops, results, strict=True)]

    @staticmethod
    def _tolerant(op: Op, result: Result) -> Result:
        if not isinstance(result, errors.Unavailable | errors.NotFound | NoHost):
            return result
        LOG.warning("a deleted server is not stopped: %s", result.message, extra={"server": op.uuid})
        return {}


class CheckShelvedImage(Step):
    """The disk is at the image service: only then may the host's be removed."""

    pure = True

    def do(self, world: World, ops: Sequence[Op]) -> Sequence[Result]:
        return [self._check(world, op) for op in ops]

    @staticmethod
    def _check(world: World, op: Op) -> Result:
        image_id = shelved_image(op)
        if not image_id:
            return NoShelvedImage(server=op.uuid, reason="it has no shelved image")
        try:
            status = world.images.show(image_id).status
        except errors.NotFound:
            return NoShelvedImage(server=op.uuid, reason=f"its shelved image {image_id} is gone")
        return {} if status == ACTIVE else NoShelvedImage(server=op.uuid, reason=f"its shelved image is {status}")


class OffloadGuests(Step):
    """Leave nothing of the guests on their host. There is no way back: what the host does not do now, it owes."""

    event = "compute_shelve_offload_instance"

    def do(self, world: World, ops: Sequence[Op]) -> Sequence[Result]:
        for op in ops:
            host = op.server.host
            if host:  # else it was released already, by a runner that died after it
                op.change(data={**op.data, "left": host})
                self._leave(world, host, op)
        return [{"power_state": int(PowerState.SHUTDOWN)} for _ in ops]

    @staticmethod
    def _leave(world: World, host: str, op: Op) -> None:
        try:
            destroy(world, host, op)
        except errors.Overtaken:
            raise
        except errors.NovaError as error:
            if not isinstance(error, NoAnswer):
                LOG.error("host %s failed to remove a shelved guest: %s", host, error.message,
                          extra={"server": op.uuid})
            owe_destroy(world, host, op, error)

    def undo_within(self, tx: Connection, world: World, ops: Sequence[Op]) -> Mapping[str, Any]:
        """Whatever failed, the server is on no host from now on, and its disk is its image's."""
        memos = {}
        for op in ops:
            op.change(data={**op.data, "left": op.server.host or op.data.get("left")})
            image_id = op.entry.arguments.get("snapshot_image_id") or shelved_image(op)
            memos[op.uuid] = msgspec.structs.replace(op.server.memo or ServerMemo(), shelved_image_id=image_id)
            op.see(**_OFF, vm_state=VmState.SHELVED_OFFLOADED.value, memo=memos[op.uuid])
        return {**_OFF, "vm_state": VmState.SHELVED_OFFLOADED.value, "memo": PerServer(memos)}

    def undo(self, world: World, ops: Sequence[Op]) -> None:
        """There is no way back: what is left to do is done (or owed), and the claim goes back."""
        for op in ops:
            if op.data.get("left"):
                self._leave(world, op.data["left"], op)
        release(world, ops)


class ReleaseHost(Step):
    """The servers are on no host, and what they claimed there goes back. Addresses and quota stay theirs."""

    def within(self, tx: Connection, world: World, ops: Sequence[Op]) -> Mapping[str, Any]:
        for op in ops:
            op.see(**_OFF)
        return _OFF

    def do(self, world: World, ops: Sequence[Op]) -> Sequence[Result]:
        release(world, ops)
        return [{} for _ in ops]


def release(world: World, ops: Sequence[Op]) -> None:
    """Unbind the servers' interfaces, and give back what they claimed, but on hosts that owe something of theirs."""
    world.networking.leave_host(ops)
    epochs, kept = {op.uuid: op.entry.epoch for op in ops}, owed(world, ops)
    world.feed.after_release(world.api.transact(lambda tx: ledger.release(tx, epochs, kept)))


class PlaceOnHost(Step):
    """The servers are on the host of their claim, with the addresses they kept; undo: they are on none."""

    def within(self, tx: Connection, world: World, ops: Sequence[Op]) -> Mapping[str, Any]:
        zone = ops[0].data.get("zone") or world.settings.default_availability_zone  # one host, so one zone
        for op in ops:
            op.see(host=op.data["host"], node=op.data["node"], availability_zone=zone)
            world.networking.follow(tx, op, op.data["host"])
        return {"host": ops[0].data["host"], "availability_zone": zone,
                "node": PerServer({op.uuid: op.data["node"] for op in ops})}

    def do(self, world: World, ops: Sequence[Op]) -> Sequence[Result]:
        return [self._bound(world, op) for op in ops]

    @staticmethod
    def _bound(world: World, op: Op) -> Result:
        try:
            world.networking.bind_to(op, op.data["host"])
        except (DatabaseAway, NotYet):
            raise
        except errors.NovaError as error:
            return error
        return {}

    def undo_within(self, tx: Connection, world: World, ops: Sequence[Op]) -> Mapping[str, Any]:
        for op in ops:
            op.see(**_OFF)
        return _OFF

    def undo(self, world: World, ops: Sequence[Op]) -> None:
        world.networking.leave_host(ops)


class RespawnGuests(BuildGuests):
    """Build the guests from their shelved images."""

    event = "compute_unshelve_instance"

    def order(self, world: World, op: Op) -> BuildOrder:
        """The shelved image's data; what the server is like is still its own image's word."""
        image_id = shelved_image(op)
        if not image_id:
            raise NoShelvedImage(server=op.uuid, reason="it has no shelved image")
        image: Image = world.images.show(image_id)
        if op.server.image is not None:
            image = msgspec.structs.replace(image, properties=op.server.image.properties)
        return msgspec.structs.replace(build_order(world, op.server, op, fence(op)), image=image)


class DropShelvedImage(Step):
    """The server has its disk again, and nobody needs the image's any more."""

    lenient = True

    def do(self, world: World, ops: Sequence[Op]) -> Sequence[Result]:
        for op in ops:
            if image_id := shelved_image(op):
                discard(world, image_id)
        return [{} for _ in ops]


def shelved_image(op: Op) -> str | None:
    memo = op.server.memo
    return memo.shelved_image_id if memo is not None else None


__all__ = ["CheckShelvedImage", "DropShelvedImage", "OffloadGuests", "PlaceOnHost", "ReleaseHost", "RespawnGuests",
           "SetAsideGuests", "StopIfThere"]
