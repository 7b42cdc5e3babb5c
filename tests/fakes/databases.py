"""SQLite databases of tests: a session opens hundreds, for a few statements each."""

from __future__ import annotations

import contextlib
import threading
from typing import Any

import sqlalchemy as sa
from sqlalchemy import event
from sqlalchemy.engine import Engine

from nova.db.models import api, cell
from nova.db.schema import revisions
from nova.db.sql.engine import Database

MODELS = {"api": api, "cell": cell}

#: The first engine of this process, whose dialect the later ones reuse, and the compiled statements of all engines: the
#: compilation of a statement costs far more than its execution, and a new engine has no compiled ones.
_FIRST: list[Engine] = []
_COMPILED: dict[Any, Any] = {}


class QuickDatabase(Database):
    """A :class:`Database` in a SQLite file that need not survive a power failure (it survives a killed process)."""

    def __init__(self, path: Any) -> None:
        super().__init__(f"sqlite:///{path}")
        self._configured: Engine | None = None
        self._configuring = threading.Lock()

    @property
    def engine(self) -> Engine:
        with self._configuring:  # no thread connects while another one adds a listener
            made = super().engine
            if made is not self._configured:
                event.listen(made, "connect", _do_not_sync)
                if not _FIRST:
                    made.connect().close()  # the dialect now has the data that it reads from a first connection
                    _FIRST.append(made)
                made.dialect = _FIRST[0].dialect
                made.update_execution_options(compiled_cache=_COMPILED)
                self._configured = made
            return made


def _do_not_sync(connection: Any, _record: Any) -> None:
    with contextlib.closing(connection.cursor()) as cursor:
        cursor.execute("PRAGMA synchronous=OFF")


def as_if_synced(schema: str, database: Database) -> Database:
    """Create all tables of ``schema`` at the newest revision, like ``nova-manage db sync``, but in a fraction of its
    time."""
    MODELS[schema].metadata.create_all(database.engine)
    table = sa.Table(revisions.version_table(schema), sa.MetaData(), sa.Column("version_num", sa.String(32)))
    with database.engine.begin() as connection:
        table.create(connection)
        connection.execute(table.insert().values(version_num=revisions.newest(schema)))
    return database
