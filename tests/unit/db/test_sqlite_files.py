"""SQLite's files: what was deleted does not stay on the disk."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from nova.db.sql import engine
from nova.db.sql.engine import Database


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    made = Database(f"sqlite:///{tmp_path}/nova.db")
    made.transact(lambda tx: tx.exec_driver_sql("CREATE TABLE things (name TEXT)"))
    yield made
    made.dispose()


def fill(database: Database, megabytes: int) -> None:
    rows = [("x" * 1024,)] * (1024 * megabytes)
    database.transact(lambda tx: tx.exec_driver_sql("INSERT INTO things VALUES (?)", rows))


def pages(database: Database) -> int:
    with database.reading() as tx:
        return int(tx.exec_driver_sql("PRAGMA page_count").scalar_one())


def test_file_when_most_of_it_is_free_then_it_becomes_smaller_a_part_at_a_time(
        database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "PAGES_AT_ONCE", 1000)
    fill(database, 12)
    full = pages(database)
    database.give_back()
    assert pages(database) == full > 3000
    database.transact(lambda tx: tx.exec_driver_sql("DELETE FROM things"))
    database.give_back()
    assert full - 1100 < pages(database) <= full - 1000  # pages that tell of pages go, too
    for _ in range(4):
        database.give_back()
    assert pages(database) < 1100


def test_log_when_it_was_written_back_then_it_is_no_larger_than_its_bound(database: Database, tmp_path: Path) -> None:
    fill(database, 20)
    assert (tmp_path / "nova.db-wal").stat().st_size > engine.WAL_BYTES
    for _ in range(2):  # it begins anew with the write after the one that wrote it back
        database.transact(lambda tx: tx.exec_driver_sql("INSERT INTO things VALUES ('y')"))
    assert (tmp_path / "nova.db-wal").stat().st_size <= engine.WAL_BYTES


def test_connection_when_another_one_writes_then_it_opens_and_reads_at_once(database: Database) -> None:
    def write(tx: engine.Connection) -> None:
        tx.exec_driver_sql("INSERT INTO things VALUES ('z')")
        second = Database(database.url)
        with second.reading() as other:
            other.exec_driver_sql("PRAGMA busy_timeout = 0")
            assert other.exec_driver_sql("SELECT count(*) FROM things").scalar_one() == 0
        second.dispose()
    database.transact(write)
