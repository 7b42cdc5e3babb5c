"""Queries of the conductor's periodic tasks: servers that stay in a state, and rows without an operation."""

from __future__ import annotations

from typing import NamedTuple

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from nova.db.models.cell import migrations, operations, servers
from nova.db.sql.types import later, utc_now
from nova.model.base import Time
from nova.model.server.migrations import (
    ACCEPTED,
    CONFIRMED,
    CONFIRMING,
    ERROR,
    FINISHED,
    LIVE_STATUSES,
    MIGRATING,
    PRE_MIGRATING,
    REVERTING,
)
from nova.model.server.servers import ServerMemo
from nova.model.server.states import TaskState, VmState

#: Seconds for which a row without an operation is left unchanged.
QUIET_S = 60
#: Statuses of migrations that an operation is working on.
WORKED_ON = (*LIVE_STATUSES, ACCEPTED, PRE_MIGRATING, MIGRATING, CONFIRMING, REVERTING)

Place = tuple[Time, int]  # a row's position in the page order


class IdleServersQuery(NamedTuple):
    """Servers that rest in a state. ``came``: the actions that lead to it; ``leaves``: the action that leaves it;
    ``after``: the position after which the page begins."""

    vm_state: VmState
    came: tuple[str, ...]
    leaves: str
    after: Place | None = None


class IdleServer(NamedTuple):
    """A server without a task. ``since``: the time of entry into its state, from the journal; ``tried``: the last
    attempt to leave it; ``clock``: the database's time."""

    id: int
    uuid: str
    epoch: int
    updated_at: Time
    memo: ServerMemo | None
    since: Time | None
    tried: Time | None
    clock: Time | str


class TimedServer(NamedTuple):
    """A server that an operation occupies for too long."""

    uuid: str
    epoch: int


class OwnerlessServer(NamedTuple):
    """A server that has a task but no open operation."""

    uuid: str
    epoch: int
    vm_state: str
    task_state: str


def idle_servers(tx: Connection, what: IdleServersQuery, limit: int) -> list[IdleServer]:
    """Return a page of servers without a task in this state, in one statement by the index on the
    state."""
    came = _last(operations.c.finished_at, operations.c.action.in_(what.came), operations.c.outcome == "success")
    tried = _last(operations.c.started_at, operations.c.action == what.leaves)
    chosen = sa.select(servers.c.id, servers.c.uuid, servers.c.epoch, servers.c.updated_at, servers.c.memo,
                       came.label("since"), tried.label("tried"), utc_now().label("clock")).where(
        servers.c.deleted == 0, servers.c.vm_state == what.vm_state.value, servers.c.task_state.is_(None))
    if what.after is not None:
        moment, key = what.after
        chosen = chosen.where(servers.c.updated_at >= moment,
                              sa.or_(servers.c.updated_at > moment, servers.c.id > key))
    return list(map(IdleServer._make, tx.execute(chosen.order_by(servers.c.updated_at, servers.c.id).limit(limit))))


def _last(moment: sa.Column[Time], *conditions: sa.ColumnElement[bool]) -> sa.ScalarSelect[Time]:
    """Return the newest such time in the server's journal."""
    return (sa.select(sa.func.max(moment)).where(operations.c.server_uuid == servers.c.uuid, *conditions)
            .scalar_subquery())


def building(tx: Connection, age_s: int, limit: int) -> list[TimedServer]:
    """Return the UUID and epoch of servers that have been building for longer than ``age_s`` and are not being
    deleted."""
    # a function's result, so that the index on ages is not used: it would read nearly all servers
    age = sa.func.coalesce(servers.c.created_at, servers.c.created_at)
    return list(map(TimedServer._make, tx.execute(sa.select(servers.c.uuid, servers.c.epoch).where(
        servers.c.deleted == 0, servers.c.vm_state == VmState.BUILDING.value, age < later(-age_s),
        sa.func.coalesce(servers.c.task_state, "") != TaskState.DELETING.value).limit(limit))))


def _worked_on(server: sa.Column[str]) -> sa.Exists:
    return sa.exists().where(operations.c.server_uuid == server, operations.c.finished_at.is_(None))


def ownerless(tx: Connection, limit: int) -> list[OwnerlessServer]:
    """Return live servers that have a task but no open operation."""
    rows = tx.execute(sa.select(servers.c.uuid, servers.c.epoch, servers.c.vm_state, servers.c.task_state).where(
        servers.c.deleted == 0, servers.c.task_state.is_not(None),
        sa.func.coalesce(servers.c.updated_at, servers.c.created_at) < later(-QUIET_S),
        sa.not_(_worked_on(servers.c.uuid))).limit(limit))
    return list(map(OwnerlessServer._make, rows))


def unchanged(tx: Connection, uuid: str, epoch: int) -> bool:
    """Return whether the live server still has this epoch, so that no operation began since. Locks its row."""
    return tx.execute(sa.select(servers.c.epoch).where(servers.c.uuid == uuid, servers.c.deleted == 0)
                      .with_for_update()).scalar_one_or_none() == epoch


def is_worked_on(tx: Connection, uuid: str) -> bool:
    """Return whether the server has an open operation."""
    open_ = sa.select(operations.c.id).where(operations.c.server_uuid == uuid, operations.c.finished_at.is_(None))
    return tx.execute(open_.limit(1)).first() is not None


def clock(tx: Connection) -> Time | str:
    """Return the database's time, as its driver returns it."""
    found: Time | str = tx.execute(sa.select(utc_now())).scalar_one()
    return found


class Abandoned(NamedTuple):
    """A migration that no operation will finish, and its new status."""

    id: int
    uuid: str
    server_uuid: str
    status: str
    becomes: str


def abandoned(tx: Connection, limit: int) -> tuple[Abandoned, ...]:
    """Return migrations that are marked in progress without an open operation, and migrations that await confirmation
    although their server is gone."""
    gone = servers.c.id.is_(None)
    rows = tx.execute(
        sa.select(migrations.c.id, migrations.c.uuid, migrations.c.server_uuid, migrations.c.status)
        .join_from(migrations, servers, sa.and_(servers.c.uuid == migrations.c.server_uuid, servers.c.deleted == 0),
                   isouter=True)
        .where(migrations.c.status.in_((*WORKED_ON, FINISHED)), sa.or_(migrations.c.status != FINISHED, gone),
               sa.func.coalesce(migrations.c.updated_at, migrations.c.created_at) < later(-QUIET_S),
               sa.not_(_worked_on(migrations.c.server_uuid))).limit(limit))
    return tuple(Abandoned(row.id, row.uuid, row.server_uuid, row.status,
                           CONFIRMED if row.status == FINISHED else ERROR) for row in rows)


def close(tx: Connection, move: Abandoned) -> bool:
    """Set the migration's new status. False if its status changed meanwhile, or an operation works on it again."""
    return tx.execute(sa.update(migrations).where(
        migrations.c.id == move.id, migrations.c.status == move.status, sa.not_(_worked_on(migrations.c.server_uuid)))
        .values(status=move.becomes, updated_at=utc_now())).rowcount == 1
