"""Rows that are locks come when they are wanted, and go."""

from __future__ import annotations

import pytest
import sqlalchemy as sa

from nova.db.models.api import quota_locks
from nova.db.models.cell import network_quota_locks
from nova.db.network import network_quota
from nova.db.quota import ledger, lock_rows
from nova.db.sql.engine import Database, DatabaseBusy


def owners(database: Database, table: sa.Table = quota_locks) -> list[str]:
    with database.reading() as tx:
        return list(tx.execute(sa.select(table.c.owner).order_by(table.c.owner)).scalars())


def forget(database: Database, after: str, limit: int) -> str | None:
    return database.transact(lambda tx: lock_rows.forget(tx, quota_locks, after, limit))


def test_rows_when_they_are_forgotten_page_by_page_then_all_go_and_come_again(api: Database) -> None:
    for name in "abcde":
        api.transact(lambda tx, name=name: ledger.lock_owner(tx, name))
    assert [forget(api, after, 2) for after in ("", "b", "d", "e")] == ["b", "d", "e", None]
    assert owners(api) == []
    api.transact(lambda tx: ledger.lock_owner(tx, "c"))
    assert owners(api) == ["c"]


def test_lock_when_the_name_is_longer_than_the_column_then_it_is_the_same_row_each_time(api: Database) -> None:
    for _again in range(2):
        api.transact(lambda tx: ledger.lock_owner(tx, "x" * 300))
    assert owners(api) == ["x" * lock_rows.LONGEST]


def test_lock_when_the_row_goes_again_and_again_then_it_is_told_and_never_taken_for_locked(api, monkeypatch) -> None:
    monkeypatch.setattr(lock_rows, "insert_ignoring", lambda *_: 0)
    with pytest.raises(DatabaseBusy):
        api.transact(lambda tx: ledger.lock_owner(tx, "demo"))


def test_tables_then_they_are_those_that_are_locked(api: Database, cell: Database) -> None:
    api.transact(lambda tx: ledger.lock_owner(tx, "demo"))
    cell.transact(lambda tx: network_quota.lock_owner(tx, "demo"))
    assert {"api": quota_locks, "cell": network_quota_locks} == lock_rows.TABLES
    assert [owners(api), owners(cell, network_quota_locks)] == [["demo"], ["demo"]]
