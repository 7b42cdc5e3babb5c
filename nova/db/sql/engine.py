"""Engines and transactions: the only module that begins and ends transactions, and retries them after a deadlock."""

from __future__ import annotations

import contextlib
import datetime
import functools
import logging
import random
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, TypeVar

import sqlalchemy as sa
from sqlalchemy import event, exc
from sqlalchemy.engine import Connection, Engine, ExceptionContext
from sqlalchemy.engine.interfaces import DBAPIConnection
from sqlalchemy.pool import ConnectionPoolEntry, PoolProxiedConnection

from nova import errors, failures, metrics
from nova.db.sql import opportunistic_tls

LOG = logging.getLogger(__name__)
T = TypeVar("T")

TRIES = 8
SIZES = ("pool_size", "max_overflow")
CONNECT_S = 10  # timeout to connect; after it the server counts as unavailable
#: SQLite file maintenance: free pages tolerated before any are released, pages released per call, and the size that the
#: write-ahead log keeps after a checkpoint.
FREE_PAGES, PAGES_AT_ONCE, WAL_BYTES = 1024, 4096, 8 * 2 ** 20
IDLE_S = 1.0  # a connection used within this time is not pinged again
#: Driver errors of a transaction that lost a conflict: MySQL 1213 deadlock, 1205 lock wait, 1020 changed row;
#: PostgreSQL 40001 and 40P01; SQLite's lock.
_LOST = (1213, 1205, 1020, "40001", "40P01")
#: Errors of a Galera node that is not part of the cluster now: 1047 for a statement, 1180 for a commit. Its connections
#: are dropped; with a proxy in front, new ones reach another node.
_APART = (1047, 1180)
#: Dialect names without a driver, as operators write them -> the drivers that nova ships.
_DRIVERS = {"mysql": "mysql+pymysql", "mariadb": "mariadb+pymysql", "postgresql": "postgresql+psycopg",
            "postgres": "postgresql+psycopg"}


#: Options of drivers for the time that a server may take for an answer. psycopg has none.
_ANSWER_TIMEOUTS = dict.fromkeys(("mysql+pymysql", "mariadb+pymysql"), ("read_timeout", "write_timeout"))

LOG_AGAIN_S = 10.0
_logged_at = -LOG_AGAIN_S


class DatabaseUnavailable(errors.Unavailable):
    """The database is unavailable. Users read the message, so it names no address and no driver; ``reason`` and the log
    do, for operators."""

    code, message = "db.away", "The database does not answer. Try again later."

    def __init__(self, reason: str = "") -> None:
        super().__init__()
        self.reason = reason


def normal_url(url: str) -> str:
    """Return the URL with the default driver added if it names none (``mysql://`` means PyMySQL here)."""
    scheme, rest = url.split("://", 1)
    return f"{_DRIVERS.get(scheme, scheme)}://{rest}"


class DatabaseBusy(DatabaseUnavailable):
    code, message = "db.busy", "The database is too busy: the change conflicted with others. Try again."


def may_be_done(error: Exception) -> bool:
    """Return whether a transaction with this error may have been committed: the connection was lost, perhaps after the
    commit. Only a caller that can recognize its own changes may repeat it."""
    return isinstance(error, DatabaseUnavailable) and not isinstance(error, DatabaseBusy)


class Database:
    """The engine of a schema. ``transact`` is for writes, ``reading`` for reads (no transaction, no lock).

    Connections are in autocommit mode, and a transaction is an explicit BEGIN and COMMIT. So a read costs no round trip
    except for its statements; switching a connection's mode back and forth would cost five.
    """

    def __init__(self, url: str, pool_size: int = 10, max_overflow: int = 0, recycle_s: int = 3600,
                 schema: str = "") -> None:
        """Prepare the engine of ``schema``, "api" or "cell", the label used in metrics."""
        self.url, self.schema = normal_url(url), schema
        self._options = {"pool_size": pool_size, "max_overflow": max_overflow, "pool_recycle": recycle_s}
        self._engine: Engine | None = None
        self._making = threading.Lock()

    def alone(self) -> Database:
        """Return the same database with one dedicated connection."""
        return Database(self.url, 1, 0, self._options["pool_recycle"], f"{self.schema} leases")

    def load_driver(self) -> None:
        """Import the driver, for workers that are forked later."""
        sa.make_url(self.url).get_dialect().import_dbapi()

    @property
    def engine(self) -> Engine:
        """The engine, created at first use: workers fork before any connection exists."""
        with self._making:  # two engines would be two pools, one of which is never disposed of
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
        """The engine for schema migrations, whose transactions Alembic controls."""
        if self.dialect == "sqlite":
            return self.engine.execution_options(begins=True)
        return self.engine.execution_options(isolation_level="READ COMMITTED")

    @property
    def dialect(self) -> str:
        """``mysql``, ``mariadb``, ``postgresql`` or ``sqlite``, as SQLAlchemy names them."""
        return self.engine.dialect.name

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """Provide a connection for reads, in which each statement stands alone."""
        with self._answering(), self.engine.connect() as connection:
            yield connection

    def transact(self, work: Callable[[Connection], T]) -> T:
        """Run ``work(tx)`` in one transaction and return its result; retry it as a whole after a conflict with another
        transaction."""
        for attempt in range(1, TRIES + 1):
            try:
                with self._answering(), self._begun() as tx:
                    return work(tx)
            except exc.DBAPIError as error:
                if not _lost_race(error):
                    raise
                if attempt == TRIES:
                    LOG.error("database transaction failed after %d attempts with conflicts: %s", TRIES, error.orig)
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
        """Open a connection in a transaction: committed at the end, rolled back on any exception."""
        with self.engine.connect() as connection:
            connection.exec_driver_sql("BEGIN IMMEDIATE" if self.dialect == "sqlite" else "BEGIN")
            with failures.on_failure(lambda: _roll_back(connection), on=BaseException):
                yield connection
                connection.exec_driver_sql("COMMIT")

    def check(self) -> None:
        """Run a trivial query. Raises DatabaseUnavailable if the database is unavailable."""
        with self.reading() as tx:
            tx.execute(sa.select(1))

    def answers(self) -> bool:
        """Return whether the database answers on a new connection, each time within ten seconds. Never raises."""
        return failures.failure_of(self._ask_anew) is None

    def _ask_anew(self) -> None:
        engine = _make(self.url, {"pool_size": 1}, impatient=True)
        try:
            with engine.connect() as connection:
                connection.execute(sa.select(1))
        finally:
            engine.dispose()

    def give_back(self) -> None:
        """Shrink an SQLite file if much of it is free; a no-op on other databases. Releases a part at a time, because
        writers wait for it."""
        if self.dialect != "sqlite":
            return
        with self._answering(), self.engine.connect() as connection:
            free, pages = (connection.exec_driver_sql(f"PRAGMA {what}").scalar_one()
                           for what in ("freelist_count", "page_count"))
            if free > max(FREE_PAGES, pages // 2):
                driver: Any = connection.connection.driver_connection
                driver.executescript(f"PRAGMA incremental_vacuum({PAGES_AT_ONCE})")  # execute would release one page

    def dispose(self) -> None:
        """Close the idle connections; the next use creates a new engine. May be called twice."""
        with self._making:
            engine, self._engine = self._engine, None
        if engine is not None:
            engine.dispose()


def _roll_back(connection: Connection) -> None:
    """Roll back, or else close the connection: an open transaction must not return to the pool."""
    if connection.invalidated:
        return  # the connection is closed, and its transaction with it
    if failures.failure_of(connection.exec_driver_sql, "ROLLBACK"):
        connection.invalidate()


def _away(reason: str) -> DatabaseUnavailable:
    """Return the error, and log it unless one was logged in the last ten seconds: many requests meet the same
    outage."""
    global _logged_at
    now = time.monotonic()
    if now - _logged_at > LOG_AGAIN_S:
        _logged_at = now
        LOG.warning("the database does not answer: %s", reason)
    return DatabaseUnavailable(reason)


def _one_line(error: exc.DBAPIError) -> str:
    return " ".join(str(error.orig).split())[:200]


def refusal(error: Exception) -> str | None:
    """Return the database's message about a refused statement, for example one without the required privilege. None if
    the error is not the database's."""
    return _one_line(error) if isinstance(error, exc.DBAPIError) else None


def _cannot_connect(error: exc.DBAPIError) -> bool:
    if error.statement is None:  # the connection attempt itself failed
        return True
    code = error.orig.args[0] if error.orig is not None and error.orig.args else None
    return code in (2002, 2003, 2006, 2013, 1040, 1053) or "connection" in str(error.orig).lower()


def _lost_race(error: exc.DBAPIError) -> bool:
    return not codes(error).isdisjoint(_LOST) or "database is locked" in str(error.orig)


def codes(error: exc.DBAPIError) -> set[int | str]:
    """Return a driver error's codes: the SQLSTATE, and the server's own number or text."""
    original = error.orig
    first = original.args[:1] if original is not None else ()
    return {getattr(original, "sqlstate", None), *first} - {None}


def _make(url: str, options: Mapping[str, int], impatient: bool = False) -> Engine:
    """Create an engine. Errors hide statement values, so that no user data or password reaches logs and faults.
    ``impatient``: a statement, too, has a timeout."""
    always: dict[str, Any] = {"hide_parameters": True, "isolation_level": "AUTOCOMMIT", "pool_reset_on_return": None,
                              "skip_autocommit_rollback": True}
    if url.startswith("sqlite"):
        engine = sa.create_engine(url, connect_args={"timeout": 30}, **always)
        _configure_sqlite(engine)
        return engine
    engine = sa.create_engine(url, pool_timeout=60, pool_use_lifo=True,
                              connect_args={**_patience(url, impatient), **_conversions(url)}, **always, **options)
    opportunistic_tls.arrange(engine)
    _configure_server(engine)
    return engine


def _conversions(url: str) -> dict[str, Mapping[object, object]]:
    """Return the option of PyMySQL for conversions, with its own except for times: it parses them by a regular
    expression, which takes twelve times as long."""
    if url.split("://", 1)[0] not in _ANSWER_TIMEOUTS:
        return {}
    from pymysql.constants import FIELD_TYPE
    from pymysql.converters import conversions, convert_datetime

    def moment(text: str) -> object:
        try:
            return datetime.datetime.fromisoformat(text)
        except ValueError:  # MariaDB's time 0000-00-00, for example
            return convert_datetime(text)
    return {"conv": {**conversions, FIELD_TYPE.DATETIME: moment, FIELD_TYPE.TIMESTAMP: moment}}


def _patience(url: str, impatient: bool) -> dict[str, int]:
    """Return the timeout options of the shipped drivers, unless the URL sets them: without one, psycopg waits for as
    long as TCP does, and PyMySQL for a greeting forever."""
    driver = url.split("://", 1)[0]
    if driver not in _DRIVERS.values():
        return {}
    names = ["connect_timeout", *(_ANSWER_TIMEOUTS.get(driver, ()) if impatient else ())]
    return {name: CONNECT_S for name in names if name not in sa.make_url(url).query}


#: Executed once per connection: each statement of a transaction sees what is committed at that time.
_READ_COMMITTED = {"postgresql": "SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL READ COMMITTED"}
_READ_COMMITTED_ELSE = "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED"


def _configure_server(engine: Engine) -> None:
    """Set READ COMMITTED on each connection, and ping idle connections before use: the server may have closed them."""
    level = _READ_COMMITTED.get(engine.dialect.name, _READ_COMMITTED_ELSE)

    @event.listens_for(engine, "connect")
    def connected(connection: DBAPIConnection, record: ConnectionPoolEntry) -> None:
        record.info["used_at"] = time.monotonic()
        _drop_certificates(connection)
        with contextlib.closing(connection.cursor()) as cursor:
            cursor.execute(level)

    @event.listens_for(engine, "checkin")
    def used(_connection: DBAPIConnection, record: ConnectionPoolEntry) -> None:
        record.info["used_at"] = time.monotonic()

    @event.listens_for(engine, "checkout")
    def wanted(connection: DBAPIConnection, record: ConnectionPoolEntry, _proxy: PoolProxiedConnection) -> None:
        if time.monotonic() - record.info["used_at"] < IDLE_S:
            return
        try:
            alive = engine.dialect.do_ping(connection)
        except Exception:  # any driver error means that the server does not answer
            alive = False
        if not alive:
            raise exc.DisconnectionError("the database server closed the connection")


def _drop_certificates(connection: DBAPIConnection) -> None:
    """Drop PyMySQL's TLS context once it has connected: it has all of the system's certificates, 4 MB for each
    connection of the pool. A connection with TLS keeps it by its socket, and no connection is opened a second time."""
    if getattr(connection, "ctx", None) is not None:
        connection.ctx = None


def _leave_apart(engine: Engine) -> None:
    """Close connections to a Galera node that left the cluster, like connections to a dead server."""

    @event.listens_for(engine, "handle_error")
    def failed(context: ExceptionContext) -> None:
        error = context.sqlalchemy_exception
        if isinstance(error, exc.DBAPIError) and not codes(error).isdisjoint(_APART):
            context.is_disconnect = True


def _count(engine: Engine, schema: str) -> None:
    """Export the number of connections in use as a metric."""
    in_use = metrics.DATABASE_IN_USE.labels(schema)
    event.listen(engine, "checkout", lambda *_: in_use.inc())
    event.listen(engine, "checkin", lambda *_: in_use.dec())


def _configure_sqlite(engine: Engine) -> None:
    """Configure SQLite: a write-ahead log, regular expressions as on the other databases, and BEGIN for migrations.

    Tenants write the expressions, and SQLite has no statement timeout: RE2 matches any expression in time proportional
    to the text.
    """
    import re2

    quiet = re2.Options()
    quiet.log_errors = False
    compiled = functools.lru_cache(maxsize=64)(lambda pattern: re2.compile(pattern, quiet))

    @event.listens_for(engine, "connect")
    def connected(connection: sqlite3.Connection, _record: ConnectionPoolEntry) -> None:
        connection.isolation_level = None
        if not connection.execute("PRAGMA page_count").fetchone()[0]:  # new file; else it would wait for writers
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
