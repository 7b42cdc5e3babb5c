"""Engines and transactions: the one place where they begin, end, and are tried again after a deadlock."""

from __future__ import annotations

import contextlib
import functools
import logging
import random
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import sqlalchemy as sa
from sqlalchemy import event, exc
from sqlalchemy.engine import Connection, Engine, ExceptionContext

from nova import errors, metrics
from nova.conf.base import Options
from nova.db.sql.types import AnyColumn, AnyRow

LOG = logging.getLogger(__name__)
T = TypeVar("T")

TRIES = 8
SIZES = ("pool_size", "max_overflow")
CONNECT_S = 10  # in which a server must take a connection, or it is away
#: Of an SQLite file: what may be free before any is given back, how much is given back at once, how large its log stays
#: once it was written back.
FREE_PAGES, PAGES_AT_ONCE, WAL_BYTES = 1024, 4096, 8 * 2 ** 20
IDLE_S = 1.0  # a connection that was used within it is taken to be alive
#: What drivers say when the other transaction won: MySQL 1213 deadlock, 1205 lock wait, 1020 changed row; PostgreSQL
#: 40001 and 40P01; SQLite's lock.
_LOST = (1213, 1205, 1020, "40001", "40P01")
#: What a node of a Galera cluster says that has no part in it now: 1047 to a statement, 1180 to a commit. Its
#: connections are given up; new ones come to another node, where a proxy leads there.
_APART = (1047, 1180)
#: An operator's bare names of dialects, and the drivers we ship.
_DRIVERS = {"mysql": "mysql+pymysql", "mariadb": "mariadb+pymysql", "postgresql": "postgresql+psycopg",
            "postgres": "postgresql+psycopg"}


LOG_AGAIN_S = 10.0
_logged_at = -LOG_AGAIN_S


class DatabaseAway(errors.Unavailable):
    """Users read the message, so it names no address and no driver; ``reason`` does, for operators, and the log."""

    code, message = "db.away", "The database does not answer. Try again later."

    def __init__(self, reason: str = "") -> None:
        super().__init__()
        self.reason = reason


def normal_url(url: str) -> str:
    """The URL with the driver we ship where it names none (``mysql://`` means PyMySQL here)."""
    scheme, rest = url.split("://", 1)
    return f"{_DRIVERS.get(scheme, scheme)}://{rest}"


class DatabaseBusy(DatabaseAway):
    code, message = "db.busy", "The database was too busy with other changes; ask again."


class Database:
    """One schema's engine. ``transact`` is for writes, ``reading`` for reads (no transaction, no lock).

    Connections are in autocommit mode, and a transaction is a BEGIN and a COMMIT of ours: a read costs no round trip
    but its statements, where changing a connection's mode to and fro would cost five.
    """

    def __init__(self, url: str, pool_size: int = 10, max_overflow: int = 0, recycle_s: int = 3600,
                 schema: str = "") -> None:
        """``schema``: api or cell, as metrics call it."""
        self.url, self.schema = normal_url(url), schema
        self._options = {"pool_size": pool_size, "max_overflow": max_overflow, "pool_recycle": recycle_s}
        self._engine: Engine | None = None
        self._making = threading.Lock()

    def alone(self) -> Database:
        """The same database over one connection that is nobody else's."""
        return Database(self.url, 1, 0, self._options["pool_recycle"], f"{self.schema} leases")

    @property
    def engine(self) -> Engine:
        """Made at first use: workers fork before any connection is made."""
        with self._making:  # two engines would be two pools, one of which nobody disposes of
            if self._engine is None:
                self._engine = _make(self.url, self._options)
                _leave_apart(self._engine)
                _count(self._engine, self.schema)
                metrics.from_zero(metrics.DATABASE_AWAY, (self.schema,))
                metrics.from_zero(metrics.DATABASE_RETRIES, (self.schema,))
                metrics.DATABASE_MOST.labels(self.schema).inc(sum(self._options[name] for name in SIZES))
            return self._engine

    @property
    def transactional(self) -> Engine:
        """The engine for the schema's migrations, whose transactions are the library's."""
        if self.dialect == "sqlite":
            return self.engine.execution_options(begins=True)
        return self.engine.execution_options(isolation_level="READ COMMITTED")

    @property
    def dialect(self) -> str:
        """``mysql``, ``mariadb``, ``postgresql`` or ``sqlite``, as SQLAlchemy names them."""
        return self.engine.dialect.name

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """A connection for reads, each statement by itself."""
        with self._answering(), self.engine.connect() as connection:
            yield connection

    def transact(self, work: Callable[[Connection], T]) -> T:
        """``work(tx)`` in one transaction; the whole of it again when another transaction was in its way."""
        for attempt in range(1, TRIES + 1):
            try:
                with self._answering(), self._begun() as tx:
                    return work(tx)
            except exc.DBAPIError as error:
                if not _lost_race(error):
                    raise
                if attempt == TRIES:
                    LOG.error("a transaction lost against others %d times: %s", TRIES, error.orig)
                    raise DatabaseBusy() from None
                metrics.DATABASE_RETRIES.labels(self.schema).inc()
                time.sleep(random.uniform(0, 0.01 * 2**attempt))
        raise AssertionError("unreachable")

    @contextmanager
    def _answering(self) -> Iterator[None]:
        try:
            yield
        except (exc.OperationalError, exc.InterfaceError) as error:
            if _lost_race(error) or not (error.connection_invalidated or _cannot_connect(error)):
                raise
            reason = _one_line(error)
        except exc.TimeoutError as error:
            reason = f"no free connection in the pool ({error})"
        else:
            return
        metrics.DATABASE_AWAY.labels(self.schema).inc()
        raise _away(reason) from None

    @contextmanager
    def _begun(self) -> Iterator[Connection]:
        """A connection in a transaction, committed at the end, rolled back for any exception."""
        with self.engine.connect() as connection:
            connection.exec_driver_sql("BEGIN IMMEDIATE" if self.dialect == "sqlite" else "BEGIN")
            try:
                yield connection
                connection.exec_driver_sql("COMMIT")
            except BaseException:
                _roll_back(connection)
                raise

    def check(self) -> None:
        """DatabaseAway."""
        with self.reading() as tx:
            tx.execute(sa.select(1))

    def give_back(self) -> None:
        """Make an SQLite file smaller when much of it is free; other databases need no word. A part at a time: writers
        wait for it."""
        if self.dialect != "sqlite":
            return
        with self._answering(), self.engine.connect() as connection:
            free, pages = (connection.exec_driver_sql(f"PRAGMA {what}").scalar_one()
                           for what in ("freelist_count", "page_count"))
            if free > max(FREE_PAGES, pages // 2):
                driver: AnyColumn = connection.connection.driver_connection
                driver.executescript(f"PRAGMA incremental_vacuum({PAGES_AT_ONCE})")  # execute would give one page back

    def dispose(self) -> None:
        """Close the connections that nobody uses; the next use makes a new engine. May be called twice."""
        with self._making:
            engine, self._engine = self._engine, None
        if engine is not None:
            engine.dispose()


def _roll_back(connection: Connection) -> None:
    """Rolled back, or else closed: a connection with an open transaction must not come back into the pool."""
    if connection.invalidated:
        return  # it is gone, and its transaction with it
    try:
        connection.exec_driver_sql("ROLLBACK")
    except Exception:
        connection.invalidate()


def _away(reason: str) -> DatabaseAway:
    """The error, with a line in the log; not one for each of the many requests that meet it."""
    global _logged_at
    now = time.monotonic()
    if now - _logged_at > LOG_AGAIN_S:
        _logged_at = now
        LOG.warning("the database does not answer: %s", reason)
    return DatabaseAway(reason)


def _one_line(error: exc.DBAPIError) -> str:
    return " ".join(str(error.orig).split())[:200]


def refusal(error: Exception) -> str | None:
    """What the database said to a statement that it does not carry out, such as one that the user has no right to.
    None: the error is another's."""
    return _one_line(error) if isinstance(error, exc.DBAPIError) else None


def _cannot_connect(error: exc.DBAPIError) -> bool:
    if error.statement is None:  # nothing was asked yet
        return True
    code = error.orig.args[0] if error.orig is not None and error.orig.args else None
    return code in (2002, 2003, 2006, 2013, 1040, 1053) or "connection" in str(error.orig).lower()


def _lost_race(error: exc.DBAPIError) -> bool:
    return not codes(error).isdisjoint(_LOST) or "database is locked" in str(error.orig)


def codes(error: exc.DBAPIError) -> set[AnyColumn]:
    """What a driver calls the error: the SQL standard's state, and the server's own number or text."""
    original = error.orig
    first = original.args[:1] if original is not None else ()
    return {getattr(original, "sqlstate", None), *first} - {None}


def _make(url: str, options: dict[str, Options]) -> Engine:
    """Errors name no values of a statement: user data and passwords would come into logs and faults with them."""
    always: dict[str, Any] = {"hide_parameters": True, "isolation_level": "AUTOCOMMIT", "pool_reset_on_return": None,
                              "skip_autocommit_rollback": True}
    if url.startswith("sqlite"):
        engine = sa.create_engine(url, connect_args={"timeout": 30}, **always)
        _teach_sqlite(engine)
        return engine
    engine = sa.create_engine(url, pool_timeout=60, pool_use_lifo=True, connect_args=_patience(url), **always,
                              **options)
    _teach_server(engine)
    return engine


def _patience(url: str) -> dict[str, AnyColumn]:
    """What the drivers we ship call the time to connect, unless the operator's URL says it: psycopg alone would wait
    for as long as TCP does."""
    ours = url.split("://", 1)[0] in _DRIVERS.values() and "connect_timeout" not in sa.make_url(url).query
    return {"connect_timeout": CONNECT_S} if ours else {}


#: Said once a connection: transactions of ours see what is committed, statement by statement.
_READ_COMMITTED = {"postgresql": "SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL READ COMMITTED"}
_READ_COMMITTED_ELSE = "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED"


def _teach_server(engine: Engine) -> None:
    """READ COMMITTED for each connection, and a ping before the use of one that was idle: the server may have gone."""
    level = _READ_COMMITTED.get(engine.dialect.name, _READ_COMMITTED_ELSE)

    @event.listens_for(engine, "connect")
    def connected(connection: AnyColumn, record: AnyRow) -> None:
        record.info["used_at"] = time.monotonic()
        with contextlib.closing(connection.cursor()) as cursor:
            cursor.execute(level)

    @event.listens_for(engine, "checkin")
    def used(_connection: AnyColumn, record: AnyRow) -> None:
        record.info["used_at"] = time.monotonic()

    @event.listens_for(engine, "checkout")
    def wanted(connection: AnyColumn, record: AnyRow, _proxy: AnyColumn) -> None:
        if time.monotonic() - record.info["used_at"] < IDLE_S:
            return
        try:
            alive = engine.dialect.do_ping(connection)
        except Exception:  # whatever the driver says: it does not answer
            alive = False
        if not alive:
            raise exc.DisconnectionError("the database server has closed it")


def _leave_apart(engine: Engine) -> None:
    """Close the connections to a node of a cluster that has no part in it, as those to a server that is gone."""

    @event.listens_for(engine, "handle_error")
    def failed(context: ExceptionContext) -> None:
        error = context.sqlalchemy_exception
        if isinstance(error, exc.DBAPIError) and not codes(error).isdisjoint(_APART):
            context.is_disconnect = True


def _count(engine: Engine, schema: str) -> None:
    """Show how many of its connections are in use."""
    in_use = metrics.DATABASE_IN_USE.labels(schema)
    event.listen(engine, "checkout", lambda *_: in_use.inc())
    event.listen(engine, "checkin", lambda *_: in_use.dec())


def _teach_sqlite(engine: Engine) -> None:
    """A write-ahead log, and regular expressions as the other databases have them; migrations' BEGIN.

    A tenant writes the expressions, and nothing breaks off a statement of a file: RE2's take time in proportion to the
    text, whatever they are.
    """
    import re2

    quiet = re2.Options()
    quiet.log_errors = False
    compiled = functools.lru_cache(maxsize=64)(lambda pattern: re2.compile(pattern, quiet))

    @event.listens_for(engine, "connect")
    def connected(connection: AnyColumn, _record: AnyColumn) -> None:
        connection.isolation_level = None
        if not connection.execute("PRAGMA page_count").fetchone()[0]:  # a new file; else it would wait for writers
            connection.execute("PRAGMA auto_vacuum=INCREMENTAL")
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute(f"PRAGMA journal_size_limit={WAL_BYTES}")
        connection.execute("PRAGMA synchronous=NORMAL")
        connection.create_function("regexp", 2, lambda pattern, value: value is not None
                                   and compiled(pattern).search(str(value)) is not None)

    @event.listens_for(engine, "begin")
    def begun(connection: Connection) -> None:
        if connection.get_execution_options().get("begins"):
            connection.exec_driver_sql("BEGIN IMMEDIATE")
