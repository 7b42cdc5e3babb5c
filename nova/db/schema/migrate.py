"""Schema migrations: one Alembic history for each schema. A conductor only compares revisions
(:mod:`nova.db.schema.revisions`), and does not import Alembic, which takes 15 MB of memory."""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Iterator

import sqlalchemy as sa
from alembic.config import Config

from alembic import command
from nova import errors
from nova.db.schema.revisions import current, folder, known
from nova.db.sql.engine import Database


def _config(schema: str, database: Database) -> Config:
    config = Config()
    config.set_main_option("script_location", os.fspath(folder(schema)))
    config.set_main_option("path_separator", "os")
    config.attributes["engine"] = database.transactional
    config.attributes["schema"] = schema
    return config


def sync(schema: str, database: Database, revision: str = "head") -> tuple[str | None, str | None]:
    """Migrate the database to ``revision``; return the revisions before and after. Safe to repeat after a crash at any
    point, and to run on several hosts concurrently: the runs are serialized. Raises daemon.DbNoSuchRevision,
    daemon.DbSchemaAhead."""
    ours = known(schema)
    if revision not in ("head", *ours):
        raise errors.daemon.DbNoSuchRevision(schema=schema, newest=ours[-1], known=", ".join(ours))
    with _alone(schema, database):
        before = current(schema, database)
        if before not in (None, *ours):
            raise errors.daemon.DbSchemaAhead(schema=schema)
        command.upgrade(_config(schema, database), revision)
        return before, current(schema, database)


#: Statements that serialize the syncs of a schema. The lock ends with its connection, even if this process dies. A
#: MariaDB lock belongs to the whole server, so it includes the database's name.
_LOCKS = {"postgresql": "SELECT 1 FROM pg_advisory_lock(hashtext(:name))",
          "mysql": "SELECT GET_LOCK(CONCAT(:name, SHA1(DATABASE())), 600)"}
_LOCKS["mariadb"] = _LOCKS["mysql"]


@contextlib.contextmanager
def _alone(schema: str, database: Database) -> Iterator[None]:
    if database.dialect == "sqlite":
        database.check()  # its file can be opened
        with _alone_with_file(database.engine.url.database or ""):
            yield
        return
    take, own = _LOCKS[database.dialect], database.alone()  # the pool may have only one connection
    try:
        with own.reading() as connection:
            if connection.execute(sa.text(take), {"name": f"nova.{schema}."}).scalar_one() != 1:
                raise errors.daemon.DbSyncUnderWay(schema=schema)
            yield
    finally:
        own.dispose()


@contextlib.contextmanager
def _alone_with_file(path: str) -> Iterator[None]:
    """Lock the SQLite file: SQLite serializes writers for one revision only, and its locks are of another kind. An
    in-memory database belongs to one process and needs no lock."""
    if path in ("", ":memory:"):
        yield
        return
    with open(path, "ab") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
