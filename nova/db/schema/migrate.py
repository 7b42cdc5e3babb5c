"""Schema migrations: one Alembic history for each schema, found in a checkout or in the installed wheel."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pathlib
import sysconfig
from collections.abc import Iterator

import sqlalchemy as sa
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory

from alembic import command
from nova import errors
from nova.db.sql.engine import Database

SCHEMAS = ("api", "cell")


def folder(schema: str) -> pathlib.Path:
    """Return the directory of the schema's history: next to the package in a checkout, under the prefix once
    installed."""
    checkout = pathlib.Path(__file__).resolve().parents[3] / "alembic" / schema
    if (checkout / "env.py").exists():
        return checkout
    installed = pathlib.Path(sysconfig.get_path("data")) / "share" / "nova" / "alembic" / schema
    if (installed / "env.py").exists():
        return installed
    raise errors.Bug(f"no migrations of the {schema} schema at {checkout} or {installed}")


def _config(schema: str, database: Database) -> Config:
    config = Config()
    config.set_main_option("script_location", os.fspath(folder(schema)))
    config.set_main_option("path_separator", "os")
    config.attributes["engine"] = database.transactional
    config.attributes["schema"] = schema
    return config


def version_table(schema: str) -> str:
    """Return the version table's name. One for each schema, because both may share a database."""
    return f"alembic_version_{schema}"


def current(schema: str, database: Database) -> str | None:
    """Return the database's revision; None if it has no nova schema."""
    with database.reading() as connection:
        context = MigrationContext.configure(connection, opts={"version_table": version_table(schema)})
        return context.get_current_revision()


def newest(schema: str, database: Database) -> str:
    """Return the last revision in this release's history of the schema. Raises Bug if the history is missing."""
    head = ScriptDirectory.from_config(_config(schema, database)).get_current_head()
    if head is None:
        raise errors.Bug(f"the {schema} schema has no history")
    return head


def sync(schema: str, database: Database, revision: str = "head") -> tuple[str | None, str | None]:
    """Migrate the database to ``revision``; return the revisions before and after. Safe to repeat after a crash at any
    point, and to run on several hosts concurrently: the runs are serialized. Raises daemon.DbNoSuchRevision,
    daemon.DbSchemaAhead."""
    known = [one.revision for one in ScriptDirectory.from_config(_config(schema, database)).walk_revisions()]
    if revision not in ("head", *known):
        raise errors.daemon.DbNoSuchRevision(schema=schema, newest=known[0], known=", ".join(reversed(known)))
    with _alone(schema, database):
        before = current(schema, database)
        if before not in (None, *known):
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


def check(schema: str, database: Database) -> None:
    """Check that the database has the schema that this release needs; a newer one (mid-upgrade) is fine. Raises
    daemon.DbSchemaBehind."""
    have = current(schema, database)
    script = ScriptDirectory.from_config(_config(schema, database))
    known = {revision.revision for revision in script.walk_revisions()}
    want = script.get_current_head()
    if have != want and (have is None or have in known):
        raise errors.daemon.DbSchemaBehind(schema=schema, have=have or "nothing", want=want,
                                           command="api_db" if schema == "api" else "db")


def product(database: Database) -> str:
    """Return the database's name and version, in one round trip."""
    with database.reading() as connection:
        if database.dialect == "sqlite":
            return f"SQLite {connection.execute(sa.text('select sqlite_version()')).scalar_one()}"
        return str(connection.execute(sa.text("select version()")).scalar_one())
