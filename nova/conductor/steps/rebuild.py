"""Rebuild: the guest anew on its own host, from the image that its admission wrote into the server's row."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from nova.conductor.engine.deps import World
from nova.conductor.engine.orders import build_order
from nova.conductor.engine.workflow import Op, Result, Step
from nova.conductor.steps.guests import GuestStep, fence
from nova.conductor.steps.placement import no_valid_host, plain_request_of
from nova.db import ledger, services
from nova.db.engine import Connection
from nova.model.counting import classes
from nova.model.images import Image
from nova.model.orders import RebuildOrder
from nova.model.providers import ResourceRequest
from nova.model.scheduling import PlacementRequest, Resources, Wishes
from nova.model.servers import ServerFacts

NOTHING = Resources(vcpus=0, memory_mb=0, disk_gb=0)  # what it takes it has already


class RebuildScheduled(Step):
    """Another image: the scheduler's filters say whether this very host suits it. Undo: while the guest is what it
    was, its row shows the old image again."""

    event = "rebuild_server"

    def do(self, world: World, ops: Sequence[Op]) -> Sequence[Result]:
        with world.cell.reading() as tx:
            enabled = services.enabled_hosts(tx)
        return [self._asked(world, op) if op.entry.arguments.get("other_image") and op.server.host in enabled else {}
                for op in ops]

    @staticmethod
    def _asked(world: World, op: Op) -> Result:
        """(Not asked about a host that takes no new servers: this is none.)"""
        [selection] = world.scheduler.select_hosts(_request(world, op))
        if selection.hosts:
            return {}
        return no_valid_host(op, selection)

    def undo_within(self, tx: Connection, world: World, ops: Sequence[Op]) -> Mapping[str, Any]:
        if any(event.step == "RebuildGuests" for op in ops for event in op.entry.history):
            return {}
        [op] = ops
        old = op.entry.arguments["old"]
        columns = {**old, "image": msgspec.convert(old["image"], Image | None)}
        op.see(**columns)
        return columns


def _request(world: World, op: Op) -> PlacementRequest:
    asked = plain_request_of(world, [op])
    return msgspec.structs.replace(
        asked, resources=NOTHING, wishes=_traits_alone(asked.wishes), host=op.server.host, node=op.server.node,
        force=False, exclude=(), availability_zone=None, alternates=0, rebuild=True)


def _traits_alone(wishes: Wishes | None) -> Wishes | None:
    """What the new image (or the flavor) asks that the node can do; all else it holds already."""
    unnamed = [msgspec.structs.replace(group, resources={}) for group in wishes.request.groups if not group.suffix
               ] if wishes else []
    if not any(group.required or group.forbidden for group in unnamed):
        return None
    return Wishes(request=ResourceRequest(groups=tuple(unnamed)))


class CountAsRebuilt(Step):
    """Outside of its cell, too, the server is known by its new image."""

    pure = True

    def do(self, world: World, ops: Sequence[Op]) -> Sequence[Result]:
        for op in ops:
            facts = ServerFacts(flavor=op.server.flavor, image_id=op.server.image_id,
                                availability_zone=op.server.pinned_availability_zone)
            count = functools.partial(ledger.count_as, server_uuid=op.uuid, epoch=op.entry.epoch,
                                      counted={"facts": facts, "classes": classes(
                                          op.server.flavor, op.server.image.properties if op.server.image else {})})
            world.api.transact(count)
        return [{} for _ in ops]


class RebuildGuests(GuestStep):
    """A server that was off stays off."""

    method, event, plugs = "rebuild_guests", "compute_rebuild_instance", True

    def order(self, world: World, op: Op) -> RebuildOrder:
        arguments = op.entry.arguments
        return RebuildOrder(
            server_uuid=op.uuid, fence=fence(op), build=build_order(world, op.server, op, fence(op)),
            keep_ephemeral=bool(arguments.get("keep_ephemeral")), start=not arguments.get("was_off"))


__all__ = ["CountAsRebuilt", "RebuildGuests", "RebuildScheduled"]
