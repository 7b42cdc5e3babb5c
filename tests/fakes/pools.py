"""A watch on all pools of connections.

A thread that holds a connection and waits for another of the same pool may wait for ever, as soon as enough threads do
so at a time. Two pools are safe while all take from them in the same order: the cell's first, then the api's.
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

WRONG: list[str] = []  # since it was last emptied: who took which connection while it held which
_TOP = f"{Path(__file__).resolve().parents[2]}/"
_ENGINE = f"{_TOP}nova/db/sql/engine.py"
_local = threading.local()


def watch() -> None:
    """From now on, in each thread and for each engine."""
    event.listen(Engine, "engine_connect", _taken)
    event.listen(Pool, "checkin", _given_back)


class Taken(NamedTuple):
    engine: Engine
    by: str  # the place in our code; empty: a test's own
    use: weakref.ref[PoolProxiedConnection]

    @property
    def still(self) -> bool:
        """What broke, or was dropped with a process that a test lets die, is held by nobody."""
        use = self.use()
        return use is not None and use.is_valid


def forget() -> None:
    """What this thread took, and never gave back because the connection broke: a test's beginning."""
    WRONG.clear()
    _held().clear()


def _held() -> dict[int, Taken]:
    """The connections that this thread holds."""
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
    """Who takes it: tests that read while they call something are their own affair."""
    frame = sys._getframe(2)
    while frame is not None:
        file = frame.f_code.co_filename
        if file.startswith(_TOP) and file != _ENGINE:
            return f"{file.removeprefix(_TOP)}:{frame.f_lineno}" if file.startswith(f"{_TOP}nova/") else ""
        frame = frame.f_back
    return ""
