"""A server's move as its steps see it: both ends, both flavors, the orders to either host, and the steps that check
the destination.

:class:`MoveArguments` has the data that a move needs while it runs, as written at the request. The destination is the
host that :class:`nova.conductor.steps.SelectNextHost` took. The claims of a move are in
:mod:`nova.conductor.steps.move_claims`.
"""

from __future__ import annotations

import functools
import logging
import uuid as uuids
from collections.abc import Callable, Mapping, Sequence
from typing import ClassVar, NamedTuple, TypeVar

import msgspec

from nova import errors, failures
from nova.conductor.engine.deps import Deps
from nova.conductor.engine.operation import Op, PlacementArguments, Result
from nova.conductor.engine.workflow import Step
from nova.conductor.steps.cleanups import clean_up_elsewhere, cleanup_of, is_elsewhere
from nova.conductor.steps.guests import build_order, fence, guarded, guest_order, results_of
from nova.conductor.steps.placement import cell_of_taken, taken, wanted_flavor
from nova.conductor.steps.volumes import VolumeStep, connect_next, connected, connector_of
from nova.db.host import host_cleanups, hosts, services
from nova.db.server import migrations
from nova.db.server.server_row import ServerRow
from nova.db.server.states import PerServer
from nova.db.sql.engine import Connection, DatabaseUnavailable
from nova.db.sql.types import AnyColumn
from nova.model.base import HostName
from nova.model.flavor.flavors import Flavor
from nova.model.guest.orders import BuildOrder, Disk, GuestOnSource, GuestOrder, MoveOrder, Outcome
from nova.model.host.cells import CELL
from nova.model.quota.counting import classes, larger
from nova.model.server.migrations import PRE_MIGRATING, PREPARING
from nova.model.server.servers import ServerMemo
from nova.model.server.states import VmState
from nova.model.volumes import local
from nova.rpc.contracts.compute import ComputeRPC

O = TypeVar("O")  # noqa: E741  (an order's type)

LOG = logging.getLogger(__name__)


class MoveArguments(PlacementArguments):
    """Arguments of every move: the server's host, flavor and state at its start. ``move``: the UUID of the
    move; of a confirm or revert, of the move that it ends. ``source_cell``: the cell of the source, of a move that
    may change it; of a confirm or revert, if it is another cell than the server's."""

    source: str
    source_node: str
    source_zone: str | None
    old_flavor: Flavor
    instance_name: str
    vm_state: str
    move: str | None = None
    source_cell: str | None = None


class EndOfResize(MoveArguments):
    """Arguments of a confirm or a revert."""

    destination: str
    destination_node: str


class MoveEnd(NamedTuple):
    """A server's place and flavor at one end of its move."""

    host: str
    node: str
    zone: str | None
    flavor: Flavor


def uuid_of(server_uuid: str, operation_id: int, cell_uuid: str = CELL) -> str:
    """Return a move's UUID, which is the same when another conductor resumes the operation. Operations of different
    cells may have the same key."""
    name = str(operation_id) if cell_uuid == CELL else f"{cell_uuid} {operation_id}"
    return str(uuids.uuid5(uuids.UUID(server_uuid), name))


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


def remembered(op: Op, **fields: object) -> ServerMemo:
    """Return the server's memo with these fields replaced."""
    memo = op.server.memo or ServerMemo()
    return ServerMemo(**{**{name: getattr(memo, name) for name in ServerMemo.__struct_fields__}, **fields})


# -- a step

class MoveStep(Step):
    """A step for one server at a time. ``status``: the migration's status, once the step's intent is written."""

    status: ClassVar[str] = ""

    def within(self, tx: Connection, deps: Deps, ops: Sequence[Op]) -> Mapping[str, object]:
        return each(ops, lambda op: self._advance(tx, deps, op))

    def _advance(self, tx: Connection, deps: Deps, op: Op) -> Mapping[str, object]:
        shown = self.shows(tx, deps, op)
        if self.status:
            shown = {"status": self.status, **shown}
        if shown and not migrations.advance(tx, move_of(op), **shown):
            raise errors.move.Cancelled(server=op.uuid)
        return self.row(tx, deps, op)

    def shows(self, tx: Connection, deps: Deps, op: Op) -> Mapping[str, object]:
        """Return more columns of the migration's row."""
        return {}

    def row(self, tx: Connection, deps: Deps, op: Op) -> Mapping[str, object]:
        """Return the columns of the server's row that change with the step's intent."""
        return {}

    def do(self, deps: Deps, ops: Sequence[Op]) -> Sequence[Result]:
        return [self._guarded(deps, op) for op in ops]

    def _guarded(self, deps: Deps, op: Op) -> Result:
        try:
            return self.act(deps, op)
        except (DatabaseUnavailable, errors.daemon.WorkflowNotYet):
            raise
        except errors.NovaError as error:
            return error

    def act(self, deps: Deps, op: Op) -> Mapping[str, object]:
        """Run the step for a single server, and return fields of OperationProgress. An error that it raises is the
        server's result; DatabaseUnavailable and daemon.WorkflowNotYet park the operation for retry."""
        return {}


def each(ops: Sequence[Op], change: Callable[[Op], Mapping[str, object]]) -> Mapping[str, object]:
    """Return the changes that ``change`` gives for each op, as columns with a value for each server."""
    changes: dict[str, PerServer] = {}
    for op in ops:
        for name, value in change(op).items():
            changes.setdefault(name, PerServer())[op.uuid] = value
    return changes


# -- hosts

#: A call of ComputeRPC: (the client, the host, its orders) -> the outcome of each.
Call = Callable[[ComputeRPC, HostName, tuple[O, ...]], tuple[Outcome, ...]]


def ask(deps: Deps, call: Call[O], host: str, op: Op, order: O) -> Outcome:
    """Send one order to a host and return its outcome. Raises host.NoAnswer if it cannot be reached; its own errors
    keep their kind."""
    with failures.replaced(errors.Unavailable, lambda error: errors.host.NoAnswer(error.message)):
        outcomes: tuple[Outcome, ...] = getattr(deps.compute, call.__name__)(host, (order,))
    [result] = results_of([op], outcomes)
    if isinstance(result, errors.NovaError):
        raise result
    return next(one for one in outcomes if one.server_uuid == op.uuid)


def ask_source(deps: Deps, call: Call[O], op: Op, order: O) -> Outcome:
    """Send an order to the source. Raises move.SourceFailed, so that no other destination is tried without success."""
    host = source(op).host
    with failures.replaced(errors.NovaError, lambda error: errors.move.SourceFailed(
            host=host, server=op.uuid, why=error.message), but=errors.Overtaken):
        return ask(deps, call, host, op, order)


def remove(deps: Deps, op: Op, end: MoveEnd, keep_disks: bool = False) -> None:
    """Remove the server from a host where it must not be. A failure becomes a pending cleanup, as does the removal
    from a host of another cell."""
    if is_elsewhere(deps, end.host):
        clean_up_elsewhere(deps, op, end.host)
        return
    with failures.parked(lambda error: add_removal_cleanup(deps, op, end, error.message, keep_disks),
                         on=errors.NovaError, but=(errors.Overtaken, DatabaseUnavailable)):
        ask(deps, ComputeRPC.destroy_guests, end.host, op, order_at(deps, op, end, keep_disks))


def add_removal_cleanup(deps: Deps, op: Op, end: MoveEnd, why: str, keep_disks: bool = False) -> None:
    """Continue without the host and write a pending cleanup, which it executes when it is back."""
    LOG.warning("host %s could not remove the remains of a move; the cleanup is pending: %s", end.host, why,
                extra={"server": op.uuid})
    cleanup = cleanup_of(deps, op, end.host, keep_disks)
    op.entry = deps.journal.fence_unreachable_host(op.entry, lambda tx: host_cleanups.add(tx, [cleanup]))


def host_is_up(deps: Deps, host: str) -> bool:
    """True if the host's nova-compute has reported lately and is not forced down."""
    with deps.cell.reading() as tx:
        return bool(services.host_up(tx, host, deps.settings.service_down_time))


def rebind(deps: Deps, op: Op, end: MoveEnd) -> None:
    """Bind the server's interfaces to its current host, and update the hosts of the network that must serve it."""
    deps.networking.bind_to(op, end.host)


def place(tx: Connection, deps: Deps, op: Op, end: MoveEnd) -> Mapping[str, object]:
    """Assign the server's row, and the addresses that follow it, to this end of the move."""
    deps.networking.follow(tx, op, end.host)
    changes = row_at(op, end)
    op.see(**changes)
    return changes


# -- checks of the destination, before any change

class AskDestination(MoveStep):
    """Check that the destination answers, and record it in the migration's row."""

    uses: ClassVar[tuple[str, ...]] = ("cells", "compute")

    def shows(self, tx: Connection, deps: Deps, op: Op) -> Mapping[str, object]:
        there = taken(op)
        if op.progress.to_cell is None:
            rows = hosts.node_rows(tx, hosts.NodesWanted(host=there.host))
        else:
            with cell_of_taken(deps, op).cell.reading() as other:
                rows = hosts.node_rows(other, hosts.NodesWanted(host=there.host))
        facts = {row.name: row.facts for row in rows}.get(there.node)
        return {"dest_compute": there.host, "dest_node": there.node,
                "dest_host": (facts.host_ip if facts is not None else None) or None}

    def act(self, deps: Deps, op: Op) -> Mapping[str, object]:
        cell_of_taken(deps, op).compute.ping(taken(op).host)
        return {}


class ConnectAtSource(VolumeStep):
    """Connect the host that the server returns to, to the server's volumes."""

    def act(self, deps: Deps, op: Op) -> None:
        connect_next(deps, op, connector_of(deps, source(op).host))


class PrepareResize(AskDestination):
    status, event = PRE_MIGRATING, "compute_prep_resize"


class CheckDestination(AskDestination):
    status, event = PREPARING, "compute_check_can_live_migrate_destination"
