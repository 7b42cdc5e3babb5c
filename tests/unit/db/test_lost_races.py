"""Transactions that a Galera cluster ends: those that lost are done again, others say that the database is away."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest
import sqlalchemy as sa
from sqlalchemy import event
from sqlalchemy.engine import Connection

from nova.db.sql import engine
from nova.db.sql.engine import TRIES, Database, DatabaseBusy, DatabaseUnavailable

#: As MariaDB says it; certification finds a conflict with another node's transaction at the commit.
DEADLOCK = (1213, "Deadlock found when trying to get lock; try restarting transaction")
APART = (1047, "WSREP has not yet prepared node for application use")
UNSURE = (1180, 'Got error 6 "No such device or address" during COMMIT')


class Cluster:
    """A database whose server has a say in how statements end."""

    def __init__(self, path: Path) -> None:
        self.database = Database(f"sqlite:///{path}")
        self.connected = 0
        with self.database.reading() as tx:
            tx.exec_driver_sql("CREATE TABLE told (word TEXT)")
        event.listen(self.database.engine, "connect", self._count)

    def _count(self, *_: object) -> None:
        self.connected += 1

    def spoil(self, statement: str, error: tuple[int, str], times: int) -> None:
        """The next ``times`` of the statement end with this error."""
        left = [times]

        @event.listens_for(self.database.engine, "do_execute_no_params")
        @event.listens_for(self.database.engine, "do_execute")
        def execute(_cursor: object, said: str, *_: object) -> None:
            if said.startswith(statement) and left[0]:
                left[0] -= 1
                raise sqlite3.OperationalError(*error)

    def told(self) -> int:
        with self.database.reading() as tx:
            return int(tx.execute(sa.text("SELECT count(*) FROM told")).scalar_one())


@pytest.fixture
def cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Cluster]:
    monkeypatch.setattr(engine.time, "sleep", lambda _seconds: None)  # between two tries
    made = Cluster(tmp_path / "cell.db")
    yield made
    made.database.dispose()


def tell(tx: Connection) -> str:
    tx.execute(sa.text("INSERT INTO told VALUES ('a')"))
    return "told"


@pytest.mark.parametrize("statement", ["COMMIT", "INSERT", "BEGIN"])
def test_transaction_when_it_loses_then_all_of_it_is_done_again_and_counts_once(cluster: Cluster,
                                                                                statement: str) -> None:
    cluster.spoil(statement, DEADLOCK, TRIES - 1)
    assert cluster.database.transact(tell) == "told"
    assert cluster.told() == 1


def test_transaction_when_each_commit_loses_then_the_database_is_busy_and_nothing_is_written(cluster: Cluster) -> None:
    cluster.spoil("COMMIT", DEADLOCK, TRIES)
    with pytest.raises(DatabaseBusy):
        cluster.database.transact(tell)
    assert cluster.told() == 0


@pytest.mark.parametrize("statement, error", [("INSERT", APART), ("BEGIN", APART), ("COMMIT", UNSURE)])
def test_transaction_when_its_node_has_left_the_cluster_then_away_and_another_connection_is_made(
        cluster: Cluster, statement: str, error: tuple[int, str]) -> None:
    cluster.spoil(statement, error, 1)
    with pytest.raises(DatabaseUnavailable):
        cluster.database.transact(tell)
    before = cluster.connected
    assert cluster.database.transact(tell) == "told"
    assert (cluster.told(), cluster.connected) == (1, before + 1)


def test_read_when_its_node_has_left_the_cluster_then_away(cluster: Cluster) -> None:
    cluster.spoil("SELECT", APART, 1)
    with pytest.raises(DatabaseUnavailable):
        cluster.told()
    assert cluster.told() == 0
