"""Retention of servers' journals: operations (the API's instance actions) and migrations.

Each operation is checked once, when it passes the retention age: the walk follows the times at which operations ended.
An operation that is then kept as one of its server's newest is removed when a later one of that server passes the age.
So an idle run is one index lookup after the mark.
"""

from __future__ import annotations

import datetime
from collections.abc import Collection
from typing import NamedTuple

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from nova.db.models.cell import migrations, operations
from nova.db.server.states import remembers
from nova.db.sql.statements import delete_keys
from nova.db.sql.types import later
from nova.model.base import Time
from nova.model.server.migrations import OVER


class Retention(NamedTuple):
    """The retention rule: keep everything of the last ``seconds``, and the ``newest`` rows of each server."""

    seconds: int
    newest: int


class Trimmed(NamedTuple):
    """The result of one batch: the mark to continue after, the number of rows removed, and whether there are more."""

    mark: str
    removed: int
    more: bool


class _Mark(NamedTuple):
    """The last operation checked, in the order of ``ix_operations_open``, and the ``newest`` of the rule applied."""

    newest: int
    finished_at: Time
    runner_id: int
    id: int

    def text(self) -> str:
        return f"{self.newest} {self.finished_at.isoformat()} {self.runner_id} {self.id}"


def _read_mark(text: str, newest: int) -> _Mark:
    """Parse a mark. Start from the beginning if there is none for this rule."""
    words = text.split()
    if not words or int(words[0]) != newest:
        return _Mark(newest, datetime.datetime(1970, 1, 1), 0, 0)
    return _Mark(newest, datetime.datetime.fromisoformat(words[1]), int(words[2]), int(words[3]))


def trim(tx: Connection, mark: str, rule: Retention, limit: int) -> Trimmed:
    """Check the next operations that passed the retention age, up to ``limit``, and remove all that their servers do
    not keep.

    Never removed: an open operation, and data that the server's next operation needs (``states.remembers``).
    """
    page = turned_old(tx, _read_mark(mark, rule.newest), rule, limit)
    if not page:
        return Trimmed(mark, 0, False)
    uuids, last = {row.server_uuid for row in page}, page[-1]
    removed = delete_keys(tx, operations, _actions(tx, uuids, max(row.id for row in page), rule))
    removed += delete_keys(tx, migrations, _moves(tx, uuids, rule))
    reached = _Mark(rule.newest, last.finished_at, last.runner_id, last.id)
    return Trimmed(reached.text(), removed, len(page) == limit)


class TurnedOld(NamedTuple):
    """An operation that passed the retention age."""

    id: int
    server_uuid: str
    finished_at: Time
    runner_id: int


def turned_old(tx: Connection, mark: _Mark, rule: Retention, limit: int) -> list[TurnedOld]:
    """Return a page of the operations after the mark that passed the retention age, in index order."""
    table = operations.c
    # The first condition is the index range; the second one excludes its first rows, which are before the mark.
    behind = sa.and_(table.finished_at >= mark.finished_at, sa.or_(
        table.finished_at > mark.finished_at, table.runner_id > mark.runner_id,
        sa.and_(table.runner_id == mark.runner_id, table.id > mark.id)))
    return list(map(TurnedOld._make, tx.execute(
        sa.select(table.id, table.server_uuid, table.finished_at, table.runner_id)
        .where(behind, table.finished_at < later(-rule.seconds))
        .order_by(table.finished_at, table.runner_id, table.id).limit(limit))))


def _oldest_kept(table: sa.Table, newest: int) -> sa.ScalarSelect[int]:
    """Return the key of the oldest of a server's ``newest`` rows; NULL if it has fewer."""
    newer = table.alias("newer")
    return (sa.select(newer.c.id).where(newer.c.server_uuid == table.c.server_uuid)
            .order_by(newer.c.id.desc()).limit(1).offset(newest - 1).scalar_subquery())


def _actions(tx: Connection, uuids: Collection[str], last: int, rule: Retention) -> list[int]:
    later_one = operations.alias("later_one")
    remembered_later = sa.exists().where(later_one.c.server_uuid == operations.c.server_uuid,
                                         later_one.c.id > operations.c.id, remembers(later_one))
    return list(tx.execute(sa.select(operations.c.id).where(
        operations.c.server_uuid.in_(sorted(uuids)), operations.c.id <= last,
        operations.c.finished_at < later(-rule.seconds), operations.c.id < _oldest_kept(operations, rule.newest),
        sa.or_(sa.not_(remembers(operations)), remembered_later))).scalars())


def _moves(tx: Connection, uuids: Collection[str], rule: Retention) -> list[int]:
    return list(tx.execute(sa.select(migrations.c.id).where(
        migrations.c.server_uuid.in_(sorted(uuids)), migrations.c.status.in_(OVER),
        sa.func.coalesce(migrations.c.updated_at, migrations.c.created_at) < later(-rule.seconds),
        migrations.c.id < _oldest_kept(migrations, rule.newest))).scalars())
