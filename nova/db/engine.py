"""Engines and transactions: the one place where they begin, end, and are tried again after a deadlock."""

from __future__ import annotations

import logging
import random
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import sqlalchemy as sa
from sqlalchemy import event, exc
from sqlalchemy.engine import Connection, Engine

from nova import errors

LOG = logging.getLogger(__name__)
T = TypeVar("T")

TRIES = 8
#: What drivers say when the other transaction won: MySQL 1213 deadlock, 1205 lock wait, 1020 changed row; PostgreSQL
#: 40001 and 40P01; SQLite's lock.
_LOST = (1213, 1205, 1020, "40001", "40P01")
#: An operator's bare names of dialects, and the drivers we ship.
_DRIVERS = {"mysql": "mysql+pymysql", "mariadb": "mariadb+pymysql", "postgresql": "postgresql+psycopg",
            "postgres": "postgresql+psycopg"}


class DatabaseAway(errors.Unavailable):
    code, message = "db.away", "The database does not answer: {reason}"


def normal_url(url: str) -> str:
    """The URL with the driver we ship where it names none (``mysql://`` means PyMySQL here)."""
    scheme, rest = url.split("://", 1)
    return f"{_DRIVERS.get(scheme, scheme)}://{rest}"


class DatabaseBusy(DatabaseAway):
    code, message = "db.busy", "The database was too busy with other changes; ask again."


class Database:
    """One schema's engine. ``transact`` is for writes, ``reading`` for reads (no transaction, no lock)."""

    def __init__(self, url: str, pool_size: int = 10, max_overflow: int = 0, recycle_s: int = 3600) -> None:
        self.url = normal_url(url)
        self._options = {"pool_size": pool_size, "max_overflow": max_overflow, "pool_recycle": recycle_s}
        self._engine: Engine | None = None

    def alone(self) -> Database:
        """The same database over one connection that is nobody else's."""
        return Database(self.url, 1, 0, self._options["pool_recycle"])

    @property
    def engine(self) -> Engine:
        """Made at first use: workers fork before any connection is made."""
        if self._engine is None:
            self._engine = _make(self.url, self._options)
            self._autocommit = self._engine.execution_options(isolation_level="AUTOCOMMIT")
        return self._engine

    @property
    def dialect(self) -> str:
        return self.engine.dialect.name

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """A connection for reads, each statement by itself."""
        assert self.engine
        with _answering(), self._autocommit.connect() as connection:
            yield connection

    def transact(self, work: Callable[[Connection], T]) -> T:
        """``work(tx)`` in one transaction; the whole of it again when another transaction was in its way."""
        for attempt in range(1, TRIES + 1):
            try:
                with _answering(), self.engine.begin() as tx:
                    return work(tx)
            except exc.DBAPIError as error:
                if not _lost_race(error):
                    raise
                if attempt == TRIES:
                    LOG.error("a transaction lost against others %d times: %s", TRIES, error.orig)
                    raise DatabaseBusy() from None
                time.sleep(random.uniform(0, 0.01 * 2**attempt))
        raise AssertionError("unreachable")

    def dispose(self) -> None:
        if self._engine is not None:
            self._engine.dispose()
            self._engine = None


@contextmanager
def _answering() -> Iterator[None]:
    try:
        yield
    except (exc.OperationalError, exc.InterfaceError) as error:
        if _lost_race(error) or not (error.connection_invalidated or _can_not_connect(error)):
            raise
        raise DatabaseAway(reason=str(error.orig)[:200]) from None
    except exc.TimeoutError as error:
        raise DatabaseAway(reason=f"no free connection in the pool ({error})") from None


def _can_not_connect(error: exc.DBAPIError) -> bool:
    code = error.orig.args[0] if error.orig is not None and error.orig.args else None
    return code in (2002, 2003, 2006, 2013, 1040, 1053) or "connection" in str(error.orig).lower()


def _lost_race(error: exc.DBAPIError) -> bool:
    return not codes(error).isdisjoint(_LOST) or "database is locked" in str(error.orig)


def codes(error: exc.DBAPIError) -> set[Any]:
    """What a driver calls the error: the SQL standard's state, and the server's own number or text."""
    original = error.orig
    first = original.args[:1] if original is not None else ()
    return {getattr(original, "sqlstate", None), *first} - {None}


def _make(url: str, options: dict[str, Any]) -> Engine:
    """Errors name no values of a statement: user data and passwords would come into logs and faults with them."""
    if url.startswith("sqlite"):
        engine = sa.create_engine(url, connect_args={"timeout": 30}, hide_parameters=True)
        _teach_sqlite(engine)
        return engine
    return sa.create_engine(url, isolation_level="READ COMMITTED", hide_parameters=True, pool_pre_ping=True,
                            pool_timeout=60, pool_use_lifo=True, **options)


def _teach_sqlite(engine: Engine) -> None:
    """BEGIN IMMEDIATE for writers, a write-ahead log, and regular expressions as the other databases have them."""
    import re

    @event.listens_for(engine, "connect")
    def connected(connection: Any, _record: Any) -> None:
        connection.isolation_level = None
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("PRAGMA synchronous=NORMAL")
        connection.create_function("regexp", 2, lambda pattern, value: value is not None
                                   and re.search(pattern, str(value)) is not None)

    @event.listens_for(engine, "begin")
    def begun(connection: Connection) -> None:
        if connection.get_execution_options().get("isolation_level") != "AUTOCOMMIT":
            connection.exec_driver_sql("BEGIN IMMEDIATE")
