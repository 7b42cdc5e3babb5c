"""A watch on all pools of connections.

A thread that holds a connection and waits for another of the same pool may wait for ever, as soon as enough threads do
so at a time. Two pools are safe while all take from them in the same order: the cell's first, then the api's.
"""

from __future__ import annotations

import threading
import traceback
from pathlib import Path

from sqlalchemy import event
from sqlalchemy.engine import Connection, Engine
from sqlalchemy.pool import Pool

WRONG: list[str] = []  # since it was last emptied: who took which connection while it held which
_TOP = Path(__file__).resolve().parents[2]
_NO_USER = (str(_TOP / "nova/db/engine.py"), __file__)
_local = threading.local()


def watch() -> None:
    """From now on, in each thread and for each engine."""
    event.listen(Engine, "engine_connect", _taken)
    event.listen(Pool, "checkin", _given_back)


def _held() -> dict[int, Engine]:
    """Connections that this thread holds, and their engines."""
    held: dict[int, Engine] = _local.__dict__.setdefault("held", {})
    return held


def _taken(connection: Connection) -> None:
    held, engine = _held(), connection.engine
    for other in held.values():
        if other.pool is engine.pool or _is_api(other) and not _is_api(engine):
            _note(other, engine)
    held[id(connection.connection.dbapi_connection)] = engine


def _given_back(dbapi_connection: object, _record: object) -> None:
    _held().pop(id(dbapi_connection), None)


def _is_api(engine: Engine) -> bool:
    return "api" in str(engine.url.database).rsplit("/", 1)[-1]


def _note(holds: Engine, wants: Engine) -> None:
    """Tests that read while they call something are their own affair."""
    frames = [frame for frame in traceback.extract_stack()
              if frame.filename.startswith(f"{_TOP}/") and frame.filename not in _NO_USER]
    if frames and frames[-1].filename.startswith(f"{_TOP}/nova/"):
        lines = ", ".join(f"{frame.filename.removeprefix(f'{_TOP}/')}:{frame.lineno}" for frame in frames[:-4:-1])
        WRONG.append(f"holds one of {holds.url.database} and takes one of {wants.url.database}: {lines}")
