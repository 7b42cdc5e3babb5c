"""Resize and cold migration (a resize with the same flavor), followed by a confirm or a revert."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence

import msgspec

from nova import errors, failures
from nova.conductor import steps
from nova.conductor.actions import checks
from nova.conductor.actions.checks import check_flavor
from nova.conductor.actions.move_requests import MovePlan, begin_move, check_source, check_target
from nova.conductor.engine.begin import row_of
from nova.conductor.engine.deps import Deps
from nova.conductor.engine.operation import Op
from nova.conductor.engine.workflow import Retry, Workflow
from nova.conductor.quota import quota
from nova.conductor.steps import move_claims, moves
from nova.conductor.steps.cell_moves import MoveToCell, forget_departure
from nova.conductor.steps.cleanups import is_elsewhere
from nova.conductor.steps.guests import ORDERS
from nova.conductor.steps.moves import MoveArguments, MoveStep, ask, ask_source, place, rebind, remove
from nova.conductor.steps.placement import taken
from nova.db import flavors
from nova.db.host import services
from nova.db.server import migrations
from nova.db.server.server_row import ServerRow
from nova.db.server.states import PerServer
from nova.db.sql.engine import Connection
from nova.model.base import Scope
from nova.model.flavor.flavors import Flavor
from nova.model.guest.orders import Disk, GuestOnSource
from nova.model.server import migrations as kinds
from nova.model.server import migrations as status
from nova.model.server.migrations import MIGRATING, POST_MIGRATING
from nova.model.server.server_orders import MigrateServer, ResizeServer
from nova.model.server.states import TaskState, VmState
from nova.rpc.contracts.compute import ComputeRPC
from nova.rpc.contracts.conductor import ConductorRPC
from nova.rpc.interface import parse_version

LOG = logging.getLogger(__name__)

CROSSES_CELLS = (1, 12)  # of ConductorRPC, whose servers can move servers between cells


def flavor_asked(deps: Deps, row: ServerRow, order: ResizeServer) -> Flavor:
    """Return the flavor that the order names. Raises Invalid if the server's project cannot see it."""
    with deps.api.reading() as tx, failures.replaced(
            errors.NotFound, lambda _: errors.server.BadFlavor(flavor_id=order.flavor_id)):
        found = flavors.get(tx, order.flavor_id, Scope(project_id=row.project_id))
    return msgspec.structs.replace(found, projects=())


def check_flavors(row: ServerRow, flavor: Flavor, order: ResizeServer) -> None:
    """Check that the server can be resized to the flavor. Raises move.ResizeSameFlavor, move.ResizeDiskWouldShrink,
    server.FlavorTooSmall for the server's image, and Forbidden for a zero disk."""
    old = row.flavor
    if flavor.flavorid == old.flavorid:
        raise errors.move.ResizeSameFlavor()
    if old.root_gb and not flavor.root_gb:
        raise errors.move.ResizeDiskWouldShrink(reason="Resize to zero disk flavor is not allowed.")
    if flavor.root_gb < old.root_gb:
        raise errors.move.ResizeDiskWouldShrink(reason=f"Resize to a smaller disk is not allowed ({old.root_gb} GB to "
                                                f"{flavor.root_gb} GB).")
    disks = row.disks or ()
    ephemeral, swap = _asked_for(disks, "ephemeral", "size_gb"), _asked_for(disks, "swap", "size_mb")
    if flavor.ephemeral_gb < max(old.ephemeral_gb, ephemeral):
        raise errors.move.ResizeDiskWouldShrink(reason="Resize to a smaller ephemeral disk is not allowed "
                                                f"({old.ephemeral_gb} GB to {flavor.ephemeral_gb} GB).")
    if flavor.swap_mb < swap:
        raise errors.move.ResizeDiskWouldShrink(reason=f"The server was created with {swap} MB of swap, but the flavor "
                                                f"has {flavor.swap_mb} MB.")
    check_flavor(flavor, row.image, order)


def _asked_for(disks: tuple[Disk, ...], kind: str, size: str) -> int:
    """Return the total size of the disks of a kind in the server's own request."""
    return sum(getattr(disk, size) for disk in disks if disk.kind == kind)


class Resizes:
    """The calls of ConductorRPC for resize and cold migration."""

    def __init__(self, deps: Deps) -> None:
        self.deps = deps

    def resize_server(self, order: ResizeServer) -> None:
        """Start to resize a server. The larger of both flavors counts against quota from here on. Raises
        server.NotFound, server.WrongState, server.BadFlavor, move.ResizeSameFlavor, move.ResizeDiskWouldShrink,
        server.FlavorTooSmall, move.SourceDown, and OverQuota."""
        row = row_of(self.deps, order.uuid)
        flavor = flavor_asked(self.deps, row, order)
        again = self.deps.settings.allow_resize_to_same_host

        def check(tx: Connection, row: ServerRow) -> None:
            check_flavors(row, flavor, order)
            checks.check_needs(self.deps.settings, flavor, row.image)
            check_source(self.deps, tx, row, errors.move.SourceDown)
        changes = {"disk_config": order.disk_config} if order.disk_config else {}
        begin_move(self.deps, MovePlan("resize", kinds.RESIZE, kinds.PRE_MIGRATING, order.uuid, MoveArguments,
                                       {"flavor": flavor, "exclude": () if again else (row.host,),
                                        **may_leave_cell(self.deps, order)}, check, flavor,
                                       changes, quota.owner(self.deps, row.project_id, row.user_id)))

    def migrate_server(self, order: MigrateServer) -> None:
        """Start to cold-migrate a server. The target may be down: the operation contacts it later. Raises
        server.NotFound, server.WrongState, move.SourceDown, move.NoSuchHost, move.OwnHost."""
        leaving = may_leave_cell(self.deps, order)
        elsewhere = leaving and order.host is not None and is_elsewhere(self.deps, order.host)

        def check(tx: Connection, row: ServerRow) -> None:
            check_source(self.deps, tx, row, errors.move.SourceDown)
            if not elsewhere:
                check_target(self.deps, tx, row, order.host, errors.move.NoSuchHost, must_be_up=False)
        begin_move(self.deps, MovePlan("migrate", kinds.MIGRATION, kinds.PRE_MIGRATING, order.uuid, MoveArguments,
                                       {"host": order.host, **leaving}, check))


def may_leave_cell(deps: Deps, order: ResizeServer | MigrateServer) -> dict[str, object]:
    """Return the arguments of a move whose destination may be in another cell; empty if it must not. Networks of
    nova-network are in one cell, and conductors of an older release cannot take such a move over."""
    if not (order.cross_cell and deps.cells.several and deps.networking.spans_cells):
        return {}
    lowest = deps.cells.read(lambda tx: services.lowest_versions(tx, deps.settings.service_down_time))
    if any(one.name == ConductorRPC.__name__ and parse_version(one.version) < CROSSES_CELLS
           for of_cell in lowest for one in of_cell):
        LOG.warning("the server stays in its cell: a conductor of an older release runs", extra={"server": order.uuid})
        return {}
    return {"cross_cell": True, "source_cell": deps.cell_uuid}


class MigrateSource(MoveStep):
    """Stop the guest, set it aside at the source and offer its disks; undo: restore it, and start it if it ran."""

    formerly = "LeaveSource"
    uses = ORDERS
    status, event = MIGRATING, "compute_resize_instance"

    def act(self, deps: Deps, op: Op) -> Mapping[str, object]:
        outcome = ask_source(deps, ComputeRPC.leave_guests, op, moves.order_at(deps, op, moves.source(op)))
        return {"offer": outcome.source}

    def undo_within(self, tx: Connection, deps: Deps, ops: Sequence[Op]) -> Mapping[str, object]:
        for op in ops:
            forget_departure(tx, op)
        return {}

    def undo(self, deps: Deps, ops: Sequence[Op]) -> None:
        for op in ops:
            take_back(deps, op)


def take_back(deps: Deps, op: Op) -> None:
    """Restore the source's guest. An error that its host reports leaves the server in ERROR. Raises while the host does
    not answer: no other host has the disks, so the operation waits for it."""
    end = moves.source(op)
    with failures.parked(lambda error: op.note(stranded=error.message), on=errors.NovaError,
                         but=(errors.Unavailable, errors.HostRefused, errors.Overtaken)):
        ask(deps, ComputeRPC.return_guests, end.host, op, moves.move_order(deps, op, end))


class CopyDisks(MoveStep):
    """Copy the disks from the source to the destination; undo: remove the copies. Within one host the disks that were
    set aside are copied, and restoring the guest removes the copies."""

    formerly = "FetchDisks"
    uses = (*ORDERS, "journal")
    status = POST_MIGRATING

    def act(self, deps: Deps, op: Op) -> Mapping[str, object]:
        order = moves.move_order(deps, op, moves.destination(op), _offer(op))
        ask(deps, ComputeRPC.fetch_guests, taken(op).host, op, order)
        return {}

    def undo(self, deps: Deps, ops: Sequence[Op]) -> None:
        for op in ops:
            if op.progress.host and not moves.same_host(op):
                remove(deps, op, moves.destination(op))


def _offer(op: Op) -> GuestOnSource | None:
    return None if moves.same_host(op) else op.progress.offer


class FinishResize(MoveStep):
    """Assign the server to the destination, with its new flavor; undo: back to the source, with the old flavor."""

    uses = (*ORDERS, "networking")
    event = "compute_finish_resize"

    def row(self, tx: Connection, deps: Deps, op: Op) -> Mapping[str, object]:
        return place(tx, deps, op, moves.destination(op))

    def act(self, deps: Deps, op: Op) -> Mapping[str, object]:
        rebind(deps, op, moves.destination(op))
        order = moves.first_order(deps, op, moves.destination(op), _offer(op))
        outcome = ask(deps, ComputeRPC.finish_guests, taken(op).host, op, order)
        return {"power_state": int(outcome.power_state)}

    def undo_within(self, tx: Connection, deps: Deps, ops: Sequence[Op]) -> Mapping[str, object]:
        return moves.each(ops, lambda op: place(tx, deps, op, moves.source(op)))

    def undo(self, deps: Deps, ops: Sequence[Op]) -> None:
        for op in ops:
            rebind(deps, op, moves.source(op))


def moved(ops: Sequence[Op]) -> Mapping[str, object]:
    """Set the servers to RESIZED until a user confirms or reverts; the memo keeps the state before it for that."""
    return {"power_state": PerServer({op.uuid: op.progress.power_state or 0 for op in ops}),
            "memo": PerServer({op.uuid: moves.remembered(op, vm_state=op.asked(MoveArguments).vm_state,
                                                         move=moves.move_of(op)) for op in ops})}


def closed(tx: Connection, op: Op, error: errors.NovaError | None) -> Mapping[str, object]:
    """Set the migration to ERROR, or to FINISHED until a user confirms it; the server without its guest to ERROR."""
    migrations.advance(tx, moves.move_of(op), status=status.ERROR if error else status.FINISHED)
    return {"vm_state": VmState.ERROR.value} if op.progress.stranded else {}


def _cold(action: str) -> Workflow:
    take_host = steps.SelectNextHost()
    return Workflow(
        action,
        move_claims.CountResize(when="flavor"),               # quota: the larger of both; undo: the old flavor
        move_claims.CleanUpEarlierMoves(event="cold_migrate"),  # clean up after overtaken moves
        steps.SelectHosts(),
        take_host,                                            # --- the steps below depend on the host ---
        move_claims.ClaimMove(),                              # claim both hosts; undo: only the old one
        moves.PrepareResize(),                                # check that the destination answers
        steps.ConnectAtDestination(),                         # volumes; undo: only the source's
        MigrateSource(task=TaskState.RESIZE_MIGRATING),       # set aside; undo: restore
        MoveToCell(),                                         # of the destination, if it is another; undo: move back
        CopyDisks(task=TaskState.RESIZE_MIGRATED),            # copy; undo: destroy, or pending cleanup
        FinishResize(task=TaskState.RESIZE_FINISH),           # assign to the destination, start the guest
        steps.MoveVolumes(),                                  # revoke the source's access
        retry=Retry(back_to=take_host, on=(errors.HostRefused, errors.ClaimConflict, errors.Unavailable)),
        again_on=(errors.Unavailable,),                       # retry while the scheduler is unavailable
        ending=moved,
        closing=closed,
        asks=moves.MoveArguments,
    )


RESIZE, MIGRATE = _cold("resize"), _cold("migrate")
