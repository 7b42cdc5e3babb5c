"""Resize and cold migration (a resize with the same flavor), followed by a confirm or a revert."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from nova import errors, failures
from nova.conductor import steps, zones
from nova.conductor.actions import checks
from nova.conductor.actions.checks import check_flavor
from nova.conductor.actions.move_requests import MovePlan, base, begin_move, check_source, check_target
from nova.conductor.engine.begin import builtins, row_of
from nova.conductor.engine.deps import Deps
from nova.conductor.engine.operation import Op
from nova.conductor.engine.workflow import Retry, Workflow
from nova.conductor.quota import quota
from nova.conductor.steps import move_claims, moves
from nova.conductor.steps.guests import ORDERS
from nova.conductor.steps.moves import MoveArguments, MoveStep, ask, ask_source, place, rebind, remove
from nova.conductor.steps.placement import cleanup_hosts, taken
from nova.db import flavors
from nova.db.host import services
from nova.db.quota import ledger
from nova.db.server import migrations, servers, states
from nova.db.server.server_row import ServerRow
from nova.db.server.states import PerServer
from nova.db.sql.engine import Connection
from nova.model.base import Scope
from nova.model.flavor.flavors import Flavor
from nova.model.guest.orders import Disk, GuestOnSource
from nova.model.server import migrations as kinds
from nova.model.server import migrations as status
from nova.model.server.migrations import CONFIRMING, FINISHED, MIGRATING, POST_MIGRATING, REVERTING
from nova.model.server.server_orders import MigrateServer, ResizeServer
from nova.model.server.servers import ServerMemo
from nova.model.server.states import PowerState, TaskState, VmState
from nova.rpc.contracts.compute import ComputeRPC


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


def ending(deps: Deps, tx: Connection, entry: states.Entry) -> states.Entry:
    """Return the entry of a confirm or revert, with the data of the move added. Raises move.ResizeNoRecord, and
    move.SourceDown if the source of a revert is down."""
    row = servers.rows_of(tx, [entry.server_uuid])[entry.server_uuid]
    memo = row.memo or ServerMemo()
    move = migrations.by_uuid(tx, memo.move) if memo.move else None
    if move is None or move.status not in (kinds.FINISHED, kinds.CONFIRMING, kinds.REVERTING) or \
            move.old_flavor is None or not move.source_compute:
        raise errors.move.ResizeNoRecord(server=entry.server_uuid)
    if entry.action == "revertResize" and not services.host_up(tx, move.source_compute,
                                                               deps.settings.service_down_time):
        raise errors.move.SourceDown(host=move.source_compute)
    metadata, _tags = servers.children(tx, [row.uuid])
    ran = VmState.ACTIVE if row.power_state == PowerState.RUNNING else VmState.STOPPED
    zone = zones.of_hosts(deps, [move.source_compute]).get(move.source_compute)
    return states.argue(tx, entry, builtins(EndOfResize(**{
        **base(deps, row), "move": move.uuid, "source": move.source_compute, "source_node": move.source_node or "",
        "source_zone": zone or deps.settings.default_availability_zone, "old_flavor": move.old_flavor,
        "destination": row.host, "destination_node": row.node or "", "metadata": metadata.get(row.uuid, {}),
        "vm_state": memo.vm_state or ran.value})))


class EndOfResize(MoveArguments):
    """Arguments of a confirm or a revert."""

    destination: str
    destination_node: str


ENDINGS = {"confirmResize": ending, "revertResize": ending}


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
                                       {"flavor": flavor, "exclude": () if again else (row.host,)}, check, flavor,
                                       changes, quota.owner(self.deps, row.project_id, row.user_id)))

    def migrate_server(self, order: MigrateServer) -> None:
        """Start to cold-migrate a server. The target may be down: the operation contacts it later. Raises
        server.NotFound, server.WrongState, move.SourceDown, move.NoSuchHost, move.OwnHost."""
        def check(tx: Connection, row: ServerRow) -> None:
            check_source(self.deps, tx, row, errors.move.SourceDown)
            check_target(self.deps, tx, row, order.host, errors.move.NoSuchHost, must_be_up=False)
        begin_move(self.deps, MovePlan("migrate", kinds.MIGRATION, kinds.PRE_MIGRATING, order.uuid, MoveArguments,
                                       {"host": order.host}, check))


class MigrateSource(MoveStep):
    """Stop the guest, set it aside at the source and offer its disks; undo: restore it, and start it if it ran."""

    formerly = "LeaveSource"
    uses = ORDERS
    status, event = MIGRATING, "compute_resize_instance"

    def act(self, deps: Deps, op: Op) -> Mapping[str, object]:
        outcome = ask_source(deps, ComputeRPC.leave_guests, op, moves.order_at(deps, op, moves.source(op)))
        return {"offer": outcome.source}

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


# -- confirm

class CleanUpSource(MoveStep):
    """Remove the guest that was set aside. If the source does not answer, this becomes a pending cleanup; within one
    host the confirm fails instead and is repeated, because such a cleanup would remove the server too."""

    formerly = "ForgetSource"
    uses = (*ORDERS, "journal")
    status, event, repeats_on_bug = CONFIRMING, "compute_confirm_resize", True

    def act(self, deps: Deps, op: Op) -> Mapping[str, object]:
        end = moves.source(op)
        if end.host != op.server.host and not moves.host_is_up(deps, end.host):  # known to be down: do not wait for it
            moves.add_removal_cleanup(deps, op, end, "it is down")
            return {"committed": True}
        try:
            ask(deps, ComputeRPC.forget_guests, end.host, op, moves.order_at(deps, op, end))
        except errors.Overtaken:
            raise
        except errors.NovaError:
            if end.host == op.server.host:
                raise
            remove(deps, op, end)
        return {"committed": True}  # a revert is no longer possible

    def undo_within(self, tx: Connection, deps: Deps, ops: Sequence[Op]) -> Mapping[str, object]:
        for op in ops:
            migrations.advance(tx, moves.move_of(op), status=FINISHED)
        return {}


# -- revert

class CheckSource(MoveStep):
    """Check that the guest that was set aside exists before anything is removed; within one host the restore does."""

    formerly = "FindAtSource"
    uses = ORDERS
    status = REVERTING

    def act(self, deps: Deps, op: Op) -> Mapping[str, object]:
        if not _within_one_host(op):
            ask_source(deps, ComputeRPC.leave_guests, op, moves.order_at(deps, op, moves.source(op)))
        return {}


class RevertAtDestination(MoveStep):
    """Remove the guest from the destination. Within one host the next step does that."""

    uses = (*ORDERS, "journal")
    event, repeats_on_bug = "compute_revert_resize", True

    def act(self, deps: Deps, op: Op) -> Mapping[str, object]:
        asked = op.asked(EndOfResize)
        if not _within_one_host(op):
            remove(deps, op, moves.MoveEnd(asked.destination, asked.destination_node, None, asked.old_flavor))
        return {"committed": True}


def _within_one_host(op: Op) -> bool:
    asked = op.asked(EndOfResize)
    return asked.destination == asked.source


class RevertSource(MoveStep):
    """Restore the server at the source; release its new claim, and count the old flavor against quota."""

    formerly = "ReturnToSource"
    uses = (*ORDERS, "feed", "networking")
    event = "compute_finish_revert_resize"

    def row(self, tx: Connection, deps: Deps, op: Op) -> Mapping[str, object]:
        return place(tx, deps, op, moves.source(op))

    def act(self, deps: Deps, op: Op) -> Mapping[str, object]:
        end = moves.source(op)
        self._give_back(deps, op)
        rebind(deps, op, end)
        # the destination's guest is gone
        with failures.replaced(errors.host.NoAnswer, lambda _: errors.daemon.WorkflowNotYet(what=f"host {end.host}")):
            outcome = ask(deps, ComputeRPC.return_guests, end.host, op, moves.move_order(deps, op, end))
        return {"power_state": int(outcome.power_state)}

    @staticmethod
    def _give_back(deps: Deps, op: Op) -> None:
        kept = cleanup_hosts(deps, [op]).get(op.uuid, ())
        flavor = moves.source(op).flavor

        def write(tx: Connection) -> list[int]:
            changed = ledger.undo_move(tx, op.uuid, op.entry.epoch, moves.move_of(op), kept)
            ledger.count_as(tx, op.uuid, op.entry.epoch, moves.counted(op.server, flavor))
            ledger.describe(tx, op.uuid, flavor)
            return changed
        deps.feed.after_release(deps.api.transact(write))


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


def settled(ops: Sequence[Op]) -> Mapping[str, object]:
    """Restore the server's state before the move, and clear the move from its memo."""
    found: dict[str, Any] = {
        "vm_state": PerServer({op.uuid: op.asked(MoveArguments).vm_state for op in ops}),
        "memo": PerServer({op.uuid: moves.remembered(op, vm_state=None, move=None) for op in ops})}
    power = {op.uuid: op.progress.power_state for op in ops if op.progress.power_state is not None}
    return {**found, "power_state": PerServer(power)} if power else found


def confirmed(tx: Connection, op: Op, error: errors.NovaError | None) -> Mapping[str, object]:
    """Set the migration to CONFIRMED; after a failure back to FINISHED, so that it can be confirmed again."""
    migrations.advance(tx, moves.move_of(op), status=status.FINISHED if error else status.CONFIRMED)
    return {}


def reverted(tx: Connection, op: Op, error: errors.NovaError | None) -> Mapping[str, object]:
    """Set the migration to REVERTED or ERROR; to FINISHED after a failure before any removal, for another attempt."""
    again = error is not None and all(event.step != "RevertAtDestination" for event in op.entry.history)
    migrations.advance(tx, moves.move_of(op), status=status.FINISHED if again else
                       status.ERROR if error else status.REVERTED)
    return {"vm_state": VmState.RESIZED.value} if again else {}


CONFIRM_RESIZE = Workflow(
    "confirmResize",
    CleanUpSource(task=TaskState.RESIZE_CONFIRMING),          # remove the old guest, or pending cleanup
    move_claims.EndMove(),                                    # release the old claim; quota: the new flavor
    again_on=(errors.Unavailable,),
    ending=settled,
    closing=confirmed,
    asks=EndOfResize,
)

REVERT_RESIZE = Workflow(
    "revertResize",
    CheckSource(),                                            # check that the old guest exists
    RevertAtDestination(),                                    # remove the new guest, or pending cleanup
    moves.ConnectAtSource(),                                  # volumes; cannot be undone from here on
    RevertSource(),                                           # restore the row, the claims and the guest
    steps.MoveVolumes(),                                      # revoke the destination's access
    ending=settled,
    closing=reverted,
    asks=EndOfResize,
)
