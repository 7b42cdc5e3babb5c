"""Live migrations that are under way: aborted, forced to an end, or waited for."""

from __future__ import annotations

import contextvars
import logging
import time
from collections.abc import Callable
from typing import NamedTuple

from nova import concurrency, context, errors
from nova.conductor.engine.deps import World
from nova.conductor.steps import moving
from nova.db import actions, migrations, servers, states
from nova.db.engine import Connection
from nova.model.actions import ActionEvent, ActionQuery
from nova.model.base import utcnow
from nova.model.migrations import LIVE_MIGRATION, OVER, POST_MIGRATING, PREPARING, QUEUED, RUNNING, Migration
from nova.model.server_orders import MigrationOrder
from nova.model.states import ACTIONS, API_NAMES, TaskState, VmState, refusal

LOG = logging.getLogger(__name__)

CHECKS_S, LOOK_S = 40.0, 0.2  # how long old versions wait for the checks ahead of a live migration
TRIES, PAUSE_S = 5, 1.0  # an order to send may be on its way to the source when it is to be stopped


class NoSuchLiveMigration(errors.NotFound):
    code = "migration.not_live"
    message = "Migration {migration} for server {server} is not live-migration."


class WrongStatus(errors.Invalid):
    code = "migration.wrong_status"
    message = "Migration {migration} state of instance {server} is {status}. Cannot {action} while the migration is " \
              "in this state."


class ChecksFailed(errors.Invalid):
    code, message = "move.checks_failed", "Migration pre-check error: {why}"


class _Order(NamedTuple):
    """What the source is told, and the action that records it."""

    source: str
    epoch: int
    key: int


class LiveMigrations:
    """Calls of ConductorRPC. Neither begins an operation, which would overtake the one that runs."""

    def __init__(self, world: World) -> None:
        self.world = world

    def abort_live_migration(self, order: MigrationOrder) -> None:
        def write(tx: Connection) -> _Order | None:
            move, told = self._record(tx, "live_migration_cancel", order, (QUEUED, PREPARING, RUNNING))
            return None if migrations.cancel(tx, move.id) else told  # the workflow sees it before it sends anything
        told = self.world.cell.transact(write)
        if told is not None:
            self._tell(self.world.compute.abort_migration, "compute_live_migration_abort", order, told)

    def force_live_migration(self, order: MigrationOrder) -> None:
        told = self.world.cell.transact(
            lambda tx: self._record(tx, "live_migration_force_complete", order, (RUNNING,))[1])
        self._tell(self.world.compute.force_migration, "compute_live_migration_force_complete", order, told)

    def _record(self, tx: Connection, action: str, order: MigrationOrder, statuses: tuple[str, ...]
                ) -> tuple[Migration, _Order]:
        servers.lock_row(tx, order.uuid)
        row = servers.rows_of(tx, [order.uuid])[order.uuid]
        move = migrations.get(tx, order.uuid, order.migration_id)
        why = refusal(ACTIONS[action], VmState(row.vm_state), TaskState(row.task_state) if row.task_state else None,
                      row.launched_at is not None)
        if why is not None:
            raise states.NotInState(action=API_NAMES.get(action, action), server=order.uuid, attribute=why.attribute,
                                    value=why.value)
        if move.type != LIVE_MIGRATION:
            raise NoSuchLiveMigration(migration=order.migration_id, server=order.uuid)
        if move.status not in statuses:
            raise WrongStatus(migration=move.id, server=order.uuid, status=move.status, action=action)
        who = context.current()
        key = actions.record(tx, order.uuid, action, (who.request_id, who.user_id, who.project_id))
        return move, _Order(move.source_compute or "", row.epoch, key)

    def _tell(self, call: Callable[[str, str, int], None], event: str, order: MigrationOrder, told: _Order) -> None:
        """Beside the caller: the source may take its time, or be away."""
        concurrency.spawn(contextvars.copy_context().run, self._told, call, event, order, told, name="migration")

    def _told(self, call: Callable[[str, str, int], None], event: str, order: MigrationOrder, told: _Order) -> None:
        begun, fault = utcnow(), None
        for attempt in range(1, TRIES + 1):
            try:
                call(told.source, order.uuid, told.epoch)
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
            LOG.warning("host %s did not do what was asked of a live migration: %s", told.source, fault,
                        extra={"server": order.uuid})
        done = ActionEvent(event=event, started_at=begun, finished_at=utcnow(), result="Error" if fault else "Success",
                           host=told.source, details=fault, step=event)
        self.world.cell.transact(lambda tx: actions.amend(tx, told.key, [done], fault))

    def _sent(self, order: MigrationOrder) -> bool:
        with self.world.cell.reading() as tx:
            return migrations.get(tx, order.uuid, order.migration_id).status == RUNNING


def wait_for_checks(world: World, entry: states.Entry) -> None:
    """Old versions answer when it is known whether the guest can go. ChecksFailed."""
    end = time.monotonic() + CHECKS_S
    while time.monotonic() < end:
        with world.cell.reading() as tx:
            newest = migrations.by_uuid(tx, moving.uuid_of(entry.server_uuid, entry.id))
        if newest is None or newest.status in (RUNNING, POST_MIGRATING):
            return
        if newest.status in OVER:
            _raise_fault(world, entry)
            return
        concurrency.sleep(LOOK_S)


def _raise_fault(world: World, entry: states.Entry) -> None:
    """What failed, when it failed before anything was sent: a migration that is over by now may have gone well."""
    with world.cell.reading() as tx:
        action = actions.get(tx, ActionQuery(server_uuid=entry.server_uuid, request_id=entry.request_id))
    if action.message and not any(one.step == "MigrateGuests" for one in action.events):
        raise ChecksFailed(why=action.fault or "it could not be begun")


__all__ = ["ChecksFailed", "LiveMigrations", "NoSuchLiveMigration", "WrongStatus", "wait_for_checks"]
