"""Live migration: the guest keeps running on one of the two hosts. A client can abort, force or await the migration."""

from __future__ import annotations

import contextlib
import contextvars
import logging
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from nova import concurrency, context, errors
from nova.conductor import steps
from nova.conductor.actions.move_requests import MovePlan, begin_move, check_source, check_target
from nova.conductor.engine.deps import Deps
from nova.conductor.engine.operation import Op
from nova.conductor.engine.workflow import Retry, Workflow
from nova.conductor.steps import move_claims, moves
from nova.conductor.steps.guests import ORDERS, fence
from nova.conductor.steps.moves import MoveStep, ask, ask_source, each, place, rebind, remove
from nova.conductor.steps.placement import taken
from nova.db.server import actions, migrations, servers, states
from nova.db.server.server_row import ServerRow
from nova.db.server.states import PerServer
from nova.db.sql.engine import Connection
from nova.model.base import utcnow
from nova.model.guest.orders import GuestArrival, LiveOrder
from nova.model.server import migrations as kinds
from nova.model.server import migrations as status
from nova.model.server.actions import ActionEvent, ActionQuery
from nova.model.server.migrations import LIVE_MIGRATION, OVER, POST_MIGRATING, PREPARING, QUEUED, RUNNING, Migration
from nova.model.server.server_orders import LiveMigrateServer, MigrationOrder
from nova.model.server.servers import Fault
from nova.model.server.states import ACTIONS, API_NAMES, TaskState, VmState, refusal
from nova.rpc.contracts.compute import ComputeRPC

LOG = logging.getLogger(__name__)

CHECKS_S, LOOK_S = 40.0, 0.2  # timeout and poll interval of requests in old API versions that wait for the checks
TRIES, PAUSE_S = 5, 1.0  # for an abort that arrives before the source has the order to migrate


class _Order(NamedTuple):
    """The data of an order to the source host, and the action record that it is logged in."""

    source: str
    epoch: int
    key: int


class LiveMigrations:
    """The live migration calls of ConductorRPC. Abort and force start no operation, which would overtake the
    migration."""

    def __init__(self, deps: Deps) -> None:
        self.deps = deps

    def live_migrate_server(self, order: LiveMigrateServer) -> None:
        """Start to live-migrate a server.

        Raises server.NotFound, server.WrongState; move.HostDown if the server's host or the target is down;
        move.NoSuchHost, move.OwnHost; move.ChecksFailed if the order waits for the checks.
        """
        def check(tx: Connection, row: ServerRow) -> None:
            check_source(self.deps, tx, row, errors.move.HostDown)
            check_target(self.deps, tx, row, order.host, errors.move.NoSuchHost)
        asked = {"host": order.host, "forced": order.force, "block": order.block_migration,
                 "over_commit": order.disk_over_commit}
        entry = begin_move(self.deps, MovePlan("live-migration", kinds.LIVE_MIGRATION, kinds.QUEUED, order.uuid,
                                               LiveMigrate, asked, check))
        if order.wait_for_checks:
            wait_for_checks(self.deps, entry)

    def abort_live_migration(self, order: MigrationOrder) -> None:
        """Abort a live migration. The call returns before the source has received it; the server's actions show the
        result.

        Raises server.NotFound, server.WrongState; move.MigrationNotFound, move.MigrationNotLive,
        move.MigrationWrongStatus.
        """
        def write(tx: Connection) -> _Order | None:
            move, recorded = self._record(tx, "live_migration_cancel", order, (QUEUED, PREPARING, RUNNING))
            return None if migrations.cancel(tx, move.id) else recorded  # the workflow reads it before it sends
        recorded = self.deps.cell.transact(write)
        if recorded is not None:
            self._send(self.deps.compute.abort_migration, "compute_live_migration_abort", order, recorded)

    def force_live_migration(self, order: MigrationOrder) -> None:
        """Force a running live migration to complete. Returns early and raises the same errors as
        ``abort_live_migration``."""
        recorded = self.deps.cell.transact(
            lambda tx: self._record(tx, "live_migration_force_complete", order, (RUNNING,))[1])
        self._send(self.deps.compute.force_migration, "compute_live_migration_force_complete", order, recorded)

    def _record(self, tx: Connection, action: str, order: MigrationOrder, statuses: tuple[str, ...]
                ) -> tuple[Migration, _Order]:
        servers.lock_row(tx, order.uuid)
        row = servers.rows_of(tx, [order.uuid])[order.uuid]
        move = migrations.get(tx, order.uuid, order.migration_id)
        why = refusal(ACTIONS[action], VmState(row.vm_state), TaskState(row.task_state) if row.task_state else None,
                      row.launched_at is not None)
        if why is not None:
            raise errors.server.WrongState(action=API_NAMES.get(action, action), server=order.uuid,
                                           attribute=why.attribute, value=why.value)
        if move.type != LIVE_MIGRATION:
            raise errors.move.MigrationNotLive(migration=order.migration_id, server=order.uuid)
        if move.status not in statuses:
            raise errors.move.MigrationWrongStatus(migration=move.id, server=order.uuid, status=move.status,
                                                   action=action, wanted=" or ".join(statuses))
        who = context.current()
        key = actions.record(tx, order.uuid, action, (who.request_id, who.user_id, who.project_id))
        return move, _Order(move.source_compute or "", row.epoch, key)

    def _send(self, call: Callable[[str, str, int], None], event: str, order: MigrationOrder,
              recorded: _Order) -> None:
        """Send the order in the background, because the source may be slow or not answer."""
        concurrency.spawn(contextvars.copy_context().run, self._send_now, call, event, order, recorded,
                          name="migration")

    def _send_now(self, call: Callable[[str, str, int], None], event: str, order: MigrationOrder,
                  recorded: _Order) -> None:
        begun, fault = utcnow(), None
        for attempt in range(1, TRIES + 1):
            try:
                call(recorded.source, order.uuid, recorded.epoch)
                fault = None
                break
            except errors.Conflict as error:  # no migration runs there: not yet, or no longer
                fault = error.message
                if attempt == TRIES or not self._sent(order):
                    break
                concurrency.sleep(PAUSE_S)
            except errors.NovaError as error:
                fault = error.message
                break
        if fault:
            LOG.warning("host %s did not abort or force the live migration: %s", recorded.source, fault,
                        extra={"server": order.uuid})
        done = ActionEvent(event=event, started_at=begun, finished_at=utcnow(), result="Error" if fault else "Success",
                           host=recorded.source, details=fault, step=event)
        self.deps.cell.transact(lambda tx: actions.amend(tx, recorded.key, [done], fault))

    def _sent(self, order: MigrationOrder) -> bool:
        with self.deps.cell.reading() as tx:
            return migrations.get(tx, order.uuid, order.migration_id).status == RUNNING


def wait_for_checks(deps: Deps, entry: states.Entry) -> None:
    """Wait until the checks of a live migration are done, as old API versions do. Raises move.ChecksFailed."""
    end = time.monotonic() + CHECKS_S
    while time.monotonic() < end:
        with deps.cell.reading() as tx:
            newest = migrations.by_uuid(tx, moves.uuid_of(entry.server_uuid, entry.id))
        if newest is None or newest.status in (RUNNING, POST_MIGRATING):
            return
        if newest.status in OVER:
            _raise_fault(deps, entry)
            return
        concurrency.sleep(LOOK_S)


def _raise_fault(deps: Deps, entry: states.Entry) -> None:
    """Raise the failure if it came before the guest was sent: a migration that has ended by now may have succeeded."""
    with deps.cell.reading() as tx:
        action = actions.get(tx, ActionQuery(server_uuid=entry.server_uuid, request_id=entry.request_id))
    if action.message and not any(one.step == "MigrateGuests" for one in action.events):
        raise errors.move.ChecksFailed(why=action.fault or "it could not be started")


class LiveMigrate(moves.MoveArguments):
    """Arguments of a live migration. ``block``: copy the disks; None: the hosts detect it."""

    block: bool | None = None
    over_commit: bool | None = None


class DescribeGuest(MoveStep):
    """Get the description of the guest that the destination needs from the source."""

    uses = ORDERS
    event = "compute_check_can_live_migrate_source"

    def act(self, deps: Deps, op: Op) -> Mapping[str, object]:
        outcome = ask_source(deps, ComputeRPC.describe_guests, op, moves.order_at(deps, op, moves.source(op)))
        return {"offer": outcome.source}


class PrepareLiveMigration(MoveStep):
    """Prepare the destination: compare the CPUs, reserve resources and plug networks; undo: remove all of it there."""

    uses = (*ORDERS, "journal", "networking")
    event, undo_event = "compute_pre_live_migration", "compute_rollback_live_migration_at_destination"

    def act(self, deps: Deps, op: Op) -> Mapping[str, object]:
        asked = op.asked(LiveMigrate)
        arriving = deps.networking.prepare_arrival(op, taken(op).host)
        order = moves.first_order(deps, op, moves.destination(op), op.progress.offer,
                                      block=asked.block, over_commit=bool(asked.over_commit))
        order = msgspec.structs.replace(order, build=msgspec.structs.replace(order.build, interfaces=arriving))
        outcome = ask(deps, ComputeRPC.prepare_arrivals, taken(op).host, op, order)
        arrival = outcome.arrival or GuestArrival()
        return {"arrival": arrival, "shared": arrival.shared}

    def undo(self, deps: Deps, ops: Sequence[Op]) -> None:
        """Remove the guest at the destination. Its disks are kept if it is unknown whether the hosts share storage:
        they may be the guest's only ones."""
        for op in ops:
            if op.progress.host:
                remove(deps, op, moves.destination(op), keep_disks=op.progress.shared is not False)
                deps.networking.abandon_arrival(op, taken(op).host)


class MigrateGuests(MoveStep):
    """Order the source to send the guest: the point of no return. If the source does not answer, it may still have sent
    the guest, so the destination is asked."""

    uses = (*ORDERS, "journal")
    status, event, repeats_on_bug = RUNNING, "compute_live_migration", True

    def act(self, deps: Deps, op: Op) -> Mapping[str, object]:
        end = moves.source(op)
        order = LiveOrder(server_uuid=op.uuid, instance_name=op.asked(LiveMigrate).instance_name, fence=fence(op),
                          arrival=op.progress.arrival or GuestArrival(),
                          build=moves.build_at(deps, op, end))
        try:
            ask(deps, ComputeRPC.migrate_guests, end.host, op, order)
        except errors.Overtaken:
            raise
        except errors.Unavailable as error:  # the host or its hypervisor
            return self._without_answer(deps, op, error)
        except errors.NovaError as error:
            raise errors.move.SourceFailed(host=end.host, server=op.uuid, why=error.message) from None
        return {"committed": True}

    def _without_answer(self, deps: Deps, op: Op, error: errors.NovaError) -> Mapping[str, object]:
        """Fence the source, so that it can no longer hand over the guest; then ask the destination whether it
        arrived."""
        op.entry = deps.journal.fence_unreachable_host(op.entry, lambda tx: None)
        host = taken(op).host
        order = moves.move_order(deps, op, moves.destination(op))
        try:
            outcome = ask(deps, ComputeRPC.land_guests, host, op, order)
        except (errors.host.NoAnswer, errors.Conflict):  # the destination is down too, or the guest is still arriving
            raise errors.daemon.WorkflowNotYet(what=f"host {moves.source(op).host} or {host}") from None
        except errors.NotFound:
            raise errors.move.SourceFailed(host=moves.source(op).host, server=op.uuid, why=error.message) from None
        return {"committed": True, "power_state": int(outcome.power_state)}

    def undo(self, deps: Deps, ops: Sequence[Op]) -> None:
        """Abort any migration that still runs at the source; errors of the source are ignored."""
        for op in ops:
            with contextlib.suppress(errors.NovaError):
                deps.compute.abort_migration(moves.source(op).host, op.uuid, op.entry.epoch)


class ArriveAtDestination(MoveStep):
    """Assign the server to the destination. Undo only happens if the guest is missing there."""

    uses = (*ORDERS, "networking")
    status, event = POST_MIGRATING, "compute_post_live_migration_at_destination"

    def row(self, tx: Connection, deps: Deps, op: Op) -> Mapping[str, object]:
        return place(tx, deps, op, moves.destination(op))

    def act(self, deps: Deps, op: Op) -> Mapping[str, object]:
        rebind(deps, op, moves.destination(op))
        host = taken(op).host
        order = moves.move_order(deps, op, moves.destination(op))
        try:
            outcome = ask(deps, ComputeRPC.land_guests, host, op, order)
        except errors.host.NoAnswer:
            raise errors.daemon.WorkflowNotYet(what=f"host {host}") from None
        except errors.Conflict:
            raise errors.daemon.WorkflowNotYet(what=f"the guest's arrival on host {host}") from None
        except errors.NotFound:
            error = errors.move.Lost(server=op.uuid, host=host)
            op.note(stranded=error.message, committed=False)
            raise error from None
        except errors.Overtaken:
            raise
        except errors.NovaError as error:  # the guest runs there, in spite of the error
            return {"stranded": error.message}
        return {"power_state": int(outcome.power_state)}

    def undo_within(self, tx: Connection, deps: Deps, ops: Sequence[Op]) -> Mapping[str, object]:
        return each(ops, lambda op: place(tx, deps, op, moves.source(op)))

    def undo(self, deps: Deps, ops: Sequence[Op]) -> None:
        for op in ops:
            rebind(deps, op, moves.source(op))


class CleanSource(MoveStep):
    """Remove the guest from the source; disks on shared storage now belong to the destination and are kept."""

    uses = (*ORDERS, "journal")

    def act(self, deps: Deps, op: Op) -> Mapping[str, object]:
        remove(deps, op, moves.source(op), keep_disks=bool(op.progress.shared))
        return {}


def arrived(ops: Sequence[Op]) -> Mapping[str, object]:
    """Keep the server's state; a guest that its new host could not take over is set to ERROR there."""
    changes: dict[str, Any] = {"memo": PerServer({op.uuid: moves.remembered(op, vm_state=None, move=None)
                                                  for op in ops})}
    power = {op.uuid: op.progress.power_state for op in ops if op.progress.power_state is not None}
    stranded = {op.uuid: op.progress.stranded for op in ops if op.progress.stranded}
    if power:
        changes["power_state"] = PerServer(power)
    if stranded:
        changes["vm_state"] = PerServer(dict.fromkeys(stranded, VmState.ERROR.value))
        changes["fault"] = PerServer({uuid: Fault(message=why[:255], details=why, created_at=utcnow())
                                      for uuid, why in stranded.items()})
    return changes


def closed(tx: Connection, op: Op, error: errors.NovaError | None) -> Mapping[str, object]:
    """Close the migration as completed, cancelled (a user's cancel request stopped it) or failed."""
    if error is None:
        migrations.advance(tx, moves.move_of(op), status=status.COMPLETED)
        return {}
    cancelled = actions.any_since(tx, op.uuid, "live_migration_cancel", op.entry.id)
    migrations.advance(tx, moves.move_of(op), status=status.CANCELLED if cancelled else status.ERROR)
    if op.progress.committed:  # it runs there and cannot be undone: the next move cleans up
        return {**moves.row_at(op, moves.destination(op)), "vm_state": VmState.ERROR.value}
    return {"vm_state": VmState.ERROR.value} if op.progress.stranded else {}


take_host = steps.SelectNextHost()
LIVE_MIGRATE = Workflow(
    "live-migration",
    move_claims.CleanUpEarlierMoves(event="conductor_live_migrate_instance"),
    steps.SelectHosts(),
    take_host,                                                # --- the steps below depend on the host ---
    move_claims.ClaimMove(),                                  # claim both hosts; undo: only the old one
    moves.CheckDestination(),                                 # check that it answers
    steps.ConnectAtDestination(),                             # volumes; undo: only the source's
    DescribeGuest(),                                          # the source describes the guest
    PrepareLiveMigration(),                                   # undo: destroy there, or pending cleanup
    MigrateGuests(),                                          # the point of no return
    ArriveAtDestination(),                                    # the row and the guest belong to the destination
    CleanSource(),                                            # remove the guest there, or pending cleanup
    steps.MoveVolumes(),                                      # revoke the source's access
    move_claims.EndMove(),                                    # release the old claim
    retry=Retry(back_to=take_host, on=(errors.HostRefused, errors.ClaimConflict, errors.Unavailable)),
    again_on=(errors.Unavailable,),
    ending=arrived,
    closing=closed,
    asks=LiveMigrate,
)
