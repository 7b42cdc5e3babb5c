"""Monitoring of all connection pools.

A thread that holds a connection and waits for another one of the same pool may deadlock, if enough threads do this at
the same time. Two pools are safe if all threads use them in the same order: the cell's first, then the api's.
"""

from __future__ import annotations

import sys
import threading
import weakref
from pathlib import Path
from typing import NamedTuple

from sqlalchemy import event
from sqlalchemy.engine import Connection, Engine
from sqlalchemy.pool import Pool, PoolProxiedConnection

WRONG: list[str] = []  # violations since the last reset: which connection was taken while which was held
_TOP = f"{Path(__file__).resolve().parents[2]}/"
_ENGINE = f"{_TOP}nova/db/sql/engine.py"
_local = threading.local()


def watch() -> None:
    """Start the monitoring, for all threads and engines."""
    event.listen(Engine, "engine_connect", _taken)
    event.listen(Pool, "checkin", _given_back)


class Taken(NamedTuple):
    engine: Engine
    by: str  # the place in nova's code; empty: in a test
    use: weakref.ref[PoolProxiedConnection]

    @property
    def still(self) -> bool:
        """Return whether the connection is still held: broken ones, and those of killed processes, are not."""
        use = self.use()
        return use is not None and use.is_valid


def forget() -> None:
    """Reset the violations and this thread's connections, which may have broken, at the start of a test."""
    WRONG.clear()
    _held().clear()


def _held() -> dict[int, Taken]:
    """Return the connections that this thread holds."""
    held: dict[int, Taken] = _local.__dict__.setdefault("held", {})
    return held


def _taken(connection: Connection) -> None:
    held, now = _held(), Taken(connection.engine, _place(), weakref.ref(connection.connection))
    for before in filter(lambda one: one.still, held.values()):
        again = before.engine.pool is now.engine.pool
        if before.by and now.by and (again or _is_api(before.engine) and not _is_api(now.engine)):
            WRONG.append(f"{before.by} holds a connection of {before.engine.url.database}, and {now.by} takes one of "
                         f"{now.engine.url.database}")
    held[id(connection.connection.dbapi_connection)] = now


def _given_back(dbapi_connection: object, _record: object) -> None:
    _held().pop(id(dbapi_connection), None)


def _is_api(engine: Engine) -> bool:
    return "api" in str(engine.url.database).rsplit("/", 1)[-1]


def _place() -> str:
    """Return the place in nova's code that takes a connection; empty for tests, which are not checked."""
    frame = sys._getframe(2)
    while frame is not None:
        file = frame.f_code.co_filename
        if file.startswith(_TOP) and file != _ENGINE:
            return f"{file.removeprefix(_TOP)}:{frame.f_lineno}" if file.startswith(f"{_TOP}nova/") else ""
        frame = frame.f_back
    return ""
