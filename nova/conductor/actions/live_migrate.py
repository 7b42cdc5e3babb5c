"""Live migration: the guest runs all the time, here or there. It can be aborted, forced to an end, or waited for."""

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
from nova.conductor.steps import moves, moving
from nova.conductor.steps.guests import ORDERS, fence
from nova.conductor.steps.moves import MoveStep, _each, ask, ask_source, place, rebind, remove
from nova.conductor.steps.placement import taken
from nova.db.server import actions, migrations, servers, states
from nova.db.server.server_row import ServerRow
from nova.db.server.states import PerServer
from nova.db.sql.engine import Connection
from nova.db.sql.types import AnyColumn
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

CHECKS_S, LOOK_S = 40.0, 0.2  # how long old versions wait for the checks ahead of a live migration
TRIES, PAUSE_S = 5, 1.0  # an order to send may be on its way to the source when it is to be stopped


class _Order(NamedTuple):
    """What the source is told, and the action that records it."""

    source: str
    epoch: int
    key: int


class LiveMigrations:
    """Calls of ConductorRPC. Neither begins an operation, which would overtake the one that runs."""

    def __init__(self, deps: Deps) -> None:
        self.deps = deps

    def live_migrate_server(self, order: LiveMigrateServer) -> None:
        """server.NotFound, server.WrongState; move.HostDown: of the server or the target; move.NoSuchHost,
        move.OwnHost; move.ChecksFailed, where the order waits for the checks."""
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
        """Answered before the source has heard of it; the server's actions tell how it ended. server.NotFound,
        server.WrongState; move.MigrationNotFound, move.MigrationNotLive, move.MigrationWrongStatus."""
        def write(tx: Connection) -> _Order | None:
            move, recorded = self._record(tx, "live_migration_cancel", order, (QUEUED, PREPARING, RUNNING))
            return None if migrations.cancel(tx, move.id) else recorded  # the workflow sees it before it sends anything
        recorded = self.deps.cell.transact(write)
        if recorded is not None:
            self._send(self.deps.compute.abort_migration, "compute_live_migration_abort", order, recorded)

    def force_live_migration(self, order: MigrationOrder) -> None:
        """The migration must be running. Answered, and errors, as ``abort_live_migration``."""
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
        """Beside the caller: the source may take its time, or be away."""
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
            except errors.Conflict as error:  # none is under way there, yet or any more
                fault = error.message
                if attempt == TRIES or not self._sent(order):
                    break
                concurrency.sleep(PAUSE_S)
            except errors.NovaError as error:
                fault = error.message
                break
        if fault:
            LOG.warning("host %s did not do what was asked of a live migration: %s", recorded.source, fault,
                        extra={"server": order.uuid})
        done = ActionEvent(event=event, started_at=begun, finished_at=utcnow(), result="Error" if fault else "Success",
                           host=recorded.source, details=fault, step=event)
        self.deps.cell.transact(lambda tx: actions.amend(tx, recorded.key, [done], fault))

    def _sent(self, order: MigrationOrder) -> bool:
        with self.deps.cell.reading() as tx:
            return migrations.get(tx, order.uuid, order.migration_id).status == RUNNING


def wait_for_checks(deps: Deps, entry: states.Entry) -> None:
    """Old versions answer when it is known whether the guest can go. move.ChecksFailed."""
    end = time.monotonic() + CHECKS_S
    while time.monotonic() < end:
        with deps.cell.reading() as tx:
            newest = migrations.by_uuid(tx, moving.uuid_of(entry.server_uuid, entry.id))
        if newest is None or newest.status in (RUNNING, POST_MIGRATING):
            return
        if newest.status in OVER:
            _raise_fault(deps, entry)
            return
        concurrency.sleep(LOOK_S)


def _raise_fault(deps: Deps, entry: states.Entry) -> None:
    """What failed, when it failed before anything was sent: a migration that is over by now may have gone well."""
    with deps.cell.reading() as tx:
        action = actions.get(tx, ActionQuery(server_uuid=entry.server_uuid, request_id=entry.request_id))
    if action.message and not any(one.step == "MigrateGuests" for one in action.events):
        raise errors.move.ChecksFailed(why=action.fault or "it could not be begun")


class LiveMigrate(moving.MoveArguments):
    """What a live migration is begun with. ``block``: disks are copied; None: the hosts find out."""

    block: bool | None = None
    over_commit: bool | None = None


class DescribeGuest(MoveStep):
    """What the destination must know of the guest."""

    uses = ORDERS
    event = "compute_check_can_live_migrate_source"

    def act(self, deps: Deps, op: Op) -> Mapping[str, AnyColumn]:
        outcome = ask_source(deps, ComputeRPC.describe_guests, op, moving.order_at(deps, op, moving.source(op)))
        return {"offer": outcome.source}


class PrepareLiveMigration(MoveStep):
    """The destination compares processors, makes room and plugs; undo: nothing of it is left there."""

    uses = (*ORDERS, "journal", "networking")
    event, undo_event = "compute_pre_live_migration", "compute_rollback_live_migration_at_destination"

    def act(self, deps: Deps, op: Op) -> Mapping[str, AnyColumn]:
        asked = op.asked(LiveMigrate)
        arriving = deps.networking.prepare_arrival(op, taken(op).host)
        order = moving.first_order(deps, op, moving.destination(op), op.progress.offer,
                                   block=asked.block, over_commit=bool(asked.over_commit))
        order = msgspec.structs.replace(order, build=msgspec.structs.replace(order.build, interfaces=arriving))
        outcome = ask(deps, ComputeRPC.prepare_arrivals, taken(op).host, op, order)
        arrival = outcome.arrival or GuestArrival()
        return {"arrival": arrival, "shared": arrival.shared}

    def undo(self, deps: Deps, ops: Sequence[Op]) -> None:
        """Where it is not known whether both hosts see the same disks, they are not touched: they may be the guest's
        only ones."""
        for op in ops:
            if op.progress.host:
                remove(deps, op, moving.destination(op), keep_disks=op.progress.shared is not False)
                deps.networking.abandon_arrival(op, taken(op).host)


class MigrateGuests(MoveStep):
    """The source sends the guest: the point of no return. A source that says nothing may have done it all the same:
    the destination knows."""

    uses = (*ORDERS, "journal")
    status, event, decisive = RUNNING, "compute_live_migration", True

    def act(self, deps: Deps, op: Op) -> Mapping[str, AnyColumn]:
        end = moving.source(op)
        order = LiveOrder(server_uuid=op.uuid, instance_name=op.asked(LiveMigrate).instance_name, fence=fence(op),
                          arrival=op.progress.arrival or GuestArrival(),
                          build=moving.build_at(deps, op, end))
        try:
            ask(deps, ComputeRPC.migrate_guests, end.host, op, order)
        except errors.Overtaken:
            raise
        except errors.Unavailable as error:  # of the host itself, or of the hypervisor there
            return self._without_answer(deps, op, error)
        except errors.NovaError as error:
            raise errors.move.SourceFailed(host=end.host, server=op.uuid, why=error.message) from None
        return {"committed": True}

    def _without_answer(self, deps: Deps, op: Op, error: errors.NovaError) -> Mapping[str, AnyColumn]:
        """From here on the source may not hand over any more; whether it has is asked after that."""
        op.entry = deps.journal.leave_behind(op.entry, lambda tx: None)
        host = taken(op).host
        try:
            outcome = ask(deps, ComputeRPC.land_guests, host, op, moving.move_order(deps, op, moving.destination(op)))
        except (errors.host.NoAnswer, errors.Conflict):  # away as well; or it still arrives
            raise errors.daemon.WorkflowNotYet(what=f"host {moving.source(op).host} or {host}") from None
        except errors.NotFound:
            raise errors.move.SourceFailed(host=moving.source(op).host, server=op.uuid, why=error.message) from None
        return {"committed": True, "power_state": int(outcome.power_state)}

    def undo(self, deps: Deps, ops: Sequence[Op]) -> None:
        """What is still sent, whatever the source said, is not sent any more."""
        for op in ops:
            with contextlib.suppress(errors.NovaError):
                deps.compute.abort_migration(moving.source(op).host, op.uuid, op.entry.epoch)


class ArriveAtDestination(MoveStep):
    """The server is the destination's. There is no way back, but for a guest that is not there at all."""

    uses = (*ORDERS, "networking")
    status, event = POST_MIGRATING, "compute_post_live_migration_at_destination"

    def row(self, tx: Connection, deps: Deps, op: Op) -> Mapping[str, AnyColumn]:
        return place(tx, deps, op, moving.destination(op))

    def act(self, deps: Deps, op: Op) -> Mapping[str, AnyColumn]:
        rebind(deps, op, moving.destination(op))
        host = taken(op).host
        try:
            outcome = ask(deps, ComputeRPC.land_guests, host, op, moving.move_order(deps, op, moving.destination(op)))
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
        except errors.NovaError as error:  # it runs there, whatever is wrong with it
            return {"stranded": error.message}
        return {"power_state": int(outcome.power_state)}

    def undo_within(self, tx: Connection, deps: Deps, ops: Sequence[Op]) -> Mapping[str, object]:
        return _each(ops, lambda op: place(tx, deps, op, moving.source(op)))

    def undo(self, deps: Deps, ops: Sequence[Op]) -> None:
        for op in ops:
            rebind(deps, op, moving.source(op))


class CleanSource(MoveStep):
    """Nothing is left where the server was; but disks that the destination sees too are its own now."""

    uses = (*ORDERS, "journal")

    def act(self, deps: Deps, op: Op) -> Mapping[str, AnyColumn]:
        remove(deps, op, moving.source(op), keep_disks=bool(op.progress.shared))
        return {}


def arrived(ops: Sequence[Op]) -> Mapping[str, object]:
    """In the state it was; but a guest that its new host could not make its own is in ERROR there."""
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
    """move.Cancelled is what somebody asked to be stopped, and was."""
    if error is None:
        migrations.advance(tx, moving.move_of(op), status=status.COMPLETED)
        return {}
    cancelled = actions.any_since(tx, op.uuid, "live_migration_cancel", op.entry.id)
    migrations.advance(tx, moving.move_of(op), status=status.CANCELLED if cancelled else status.ERROR)
    if op.progress.committed:  # it runs there, and nothing of that could be undone: the next move settles what is left
        return {**moving.row_at(op, moving.destination(op)), "vm_state": VmState.ERROR.value}
    return {"vm_state": VmState.ERROR.value} if op.progress.stranded else {}


take_host = steps.TakeNextHost()
LIVE_MIGRATE = Workflow(
    "live-migration",
    moves.CleanUpEarlierMoves(event="conductor_live_migrate_instance"),
    steps.SelectHosts(),
    take_host,                                                # --- what depends on the host stands below ---
    moves.ClaimMove(),                                        # both ends are claimed; undo: the old one alone
    moves.CheckDestination(),                                 # it answers
    steps.ConnectAtDestination(),                             # volumes; undo: the source's alone
    DescribeGuest(),                                          # the source says what there is to come
    PrepareLiveMigration(),                                   # the destination is ready; undo: destroyed, or owed
    MigrateGuests(),                                          # the point of no return
    ArriveAtDestination(),                                    # the row is the destination's, and so is the guest
    CleanSource(),                                            # nothing is left there, or it is owed
    steps.MoveVolumes(),                                      # the source may use none any more
    moves.EndMove(),                                          # the old place is free
    retry=Retry(back_to=take_host, on=(errors.HostRefused, errors.ClaimConflict, errors.Unavailable)),
    again_on=(errors.Unavailable,),
    ending=arrived,
    closing=closed,
    asks=LiveMigrate,
)
