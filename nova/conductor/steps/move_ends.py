"""A server's move as its steps see it: both ends, both flavors, and orders for either of them.

:class:`MoveArguments` has the data that a move needs while it runs, as written at the request. The destination is the
host that :class:`nova.conductor.steps.SelectNextHost` took.
"""

from __future__ import annotations

import functools
import uuid as uuids
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import msgspec

from nova.conductor.engine.deps import Deps
from nova.conductor.engine.operation import Op, PlacementArguments
from nova.conductor.steps.guests import build_order, fence, guarded, guest_order
from nova.conductor.steps.placement import taken, wanted_flavor
from nova.conductor.steps.volumes import connected
from nova.db.server.server_row import ServerRow
from nova.db.sql.types import AnyColumn
from nova.model.flavor.flavors import Flavor
from nova.model.guest.orders import BuildOrder, Disk, GuestOnSource, GuestOrder, MoveOrder
from nova.model.quota.counting import classes, larger
from nova.model.server.states import VmState
from nova.model.volumes import local


class MoveArguments(PlacementArguments):
    """Arguments of every move: the server's host, flavor and state at its start. ``move``: of a confirm or revert, the
    move that it ends."""

    source: str
    source_node: str
    source_zone: str | None
    old_flavor: Flavor
    instance_name: str
    vm_state: str
    move: str | None = None


class MoveEnd(NamedTuple):
    """A server's place and flavor at one end of its move."""

    host: str
    node: str
    zone: str | None
    flavor: Flavor


def uuid_of(server_uuid: str, operation_id: int) -> str:
    """Return a move's UUID, which is the same when another conductor resumes the operation."""
    return str(uuids.uuid5(uuids.UUID(server_uuid), str(operation_id)))


def move_of(op: Op) -> str:
    """Return the UUID of the move that the operation starts, or (confirm, revert) ends."""
    return op.asked(MoveArguments).move or uuid_of(op.uuid, op.entry.id)


def source(op: Op) -> MoveEnd:
    """Return the server's host and flavor at the start of the move."""
    asked = op.asked(MoveArguments)
    return MoveEnd(asked.source, asked.source_node, asked.source_zone, asked.old_flavor)


def destination(op: Op) -> MoveEnd:
    """Return the destination and the flavor of the move. Raises Bug if no host is taken yet."""
    host = taken(op)
    return MoveEnd(host.host, host.node, op.progress.zone, wanted_flavor(op))


def same_host(op: Op) -> bool:
    """True if the move starts and ends on the same host."""
    return op.progress.host == op.asked(MoveArguments).source


def row_at(op: Op, end: MoveEnd) -> dict[str, object]:
    """Return the columns of the server's row that describe its place and flavor."""
    return {"host": end.host, "node": end.node, "availability_zone": end.zone, "flavor": end.flavor,
            "flavorid": end.flavor.flavorid, "disks": disks_at(op.server.disks, end.flavor)}


def disks_at(disks: Sequence[Disk] | None, flavor: Flavor) -> tuple[Disk, ...] | None:
    """Return the requested disks of a server, with the root disk as large as the flavor says."""
    if not disks:
        return None
    return tuple(msgspec.structs.replace(disk, size_gb=flavor.root_gb) if disk.kind == "root" else disk
                 for disk in disks)


def server_at(op: Op, end: MoveEnd) -> ServerRow:
    """Return the server's row as it would be at this end."""
    return msgspec.structs.replace(op.server, **row_at(op, end))


def build_at(deps: Deps, op: Op, end: MoveEnd) -> BuildOrder:
    """Return the order to build the guest on the end's host."""
    order = build_order(deps, server_at(op, end), op, fence(op), end.host, leaves(op, end))
    coming = not leaves(op, end) or op.entry.action == "revertResize"
    return connected(deps, op, msgspec.structs.replace(order, node=end.node), coming)


def leaves(op: Op, end: MoveEnd) -> bool:
    """True if this end is the source of the move."""
    return end == source(op)


def runs(op: Op) -> bool:
    """True if the guest ran when the move started."""
    return op.asked(MoveArguments).vm_state != VmState.STOPPED.value


def order_at(deps: Deps, op: Op, end: MoveEnd, keep_disks: bool = False) -> GuestOrder:
    """Return an order for the guest that exists on the end's host."""
    there = Op(msgspec.structs.replace(op.entry, data={}), server_at(op, end), op.secrets)
    order = guest_order(deps, there, fence(op), leaving=leaves(op, end))
    return msgspec.structs.replace(order, keep_disks=keep_disks)


def move_order(deps: Deps, op: Op, end: MoveEnd, offered: GuestOnSource | None = None,
               **fields: AnyColumn) -> MoveOrder:
    """Return an order for the guest that moves to ``end``, to start it there if it ran before. ``fields``: more of
    MoveOrder."""
    return MoveOrder(server_uuid=op.uuid, fence=fence(op), build=build_at(deps, op, end), source=offered,
                     **{"start": runs(op), **fields})


def first_order(deps: Deps, op: Op, end: MoveEnd, offered: GuestOnSource | None = None, **fields: object) -> MoveOrder:
    """Return the first order that lets the guest run on a new host, which includes its firewall rules."""
    order = move_order(deps, op, end, offered, **fields)
    [build] = guarded(deps, [order.build], [op.server])
    return msgspec.structs.replace(order, build=build)


def counted(server: ServerRow, flavor: Flavor, other: Flavor | None = None) -> Mapping[str, object]:
    """Return the quota usage of a server: of one flavor, or (while a resize is open) the larger of both."""
    flavors = [local(one, server.volumes) for one in (flavor, other) if one is not None]
    image = server.image.properties if server.image else {}
    needed = functools.reduce(larger, (classes(one, image) for one in flavors))
    return {"vcpus": max(one.vcpus for one in flavors), "memory_mb": max(one.memory_mb for one in flavors),
            "classes": needed}
