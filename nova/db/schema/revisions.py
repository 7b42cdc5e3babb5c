"""Revisions of the databases' schemas, without the library that migrates them: a conductor only compares them."""

from __future__ import annotations

import pathlib
import re
import sysconfig

import sqlalchemy as sa

from nova import errors
from nova.db.sql.engine import Database

SCHEMAS = ("api", "cell")

#: Head of a migration's file: its revision, and the one that it follows; None for the first one.
_HEAD = re.compile(r'^revision = "(\w+)"\ndown_revision = (?:"(\w+)"|None)$', re.MULTILINE)


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


def version_table(schema: str) -> str:
    """Return the version table's name. One for each schema, because both may share a database."""
    return f"alembic_version_{schema}"


def current(schema: str, database: Database) -> str | None:
    """Return the database's revision; None if it has no nova schema."""
    table = sa.table(version_table(schema), sa.column("version_num", sa.String))
    with database.reading() as connection:
        if not sa.inspect(connection).has_table(table.name):
            return None
        found: str | None = connection.execute(sa.select(table.c.version_num)).scalar_one_or_none()
    return found


def known(schema: str) -> tuple[str, ...]:
    """Return the revisions of this release's history of the schema, the first one first. Raises Bug if the history is
    incomplete."""
    follows: dict[str | None, str] = {}
    for path in (folder(schema) / "versions").glob("*.py"):
        if head := _HEAD.search(path.read_text()):
            follows[head[2]] = head[1]
    found: list[str] = []
    while (after := follows.get(found[-1] if found else None)) is not None:
        found.append(after)
    if not found or len(found) != len(follows):
        raise errors.Bug(f"the history of the {schema} schema is incomplete: {len(follows)} revisions in "
                         f"{folder(schema)}, of which {len(found)} follow each other. Install the package again")
    return tuple(found)


def newest(schema: str) -> str:
    """Return the last revision in this release's history of the schema. Raises Bug if the history is incomplete."""
    return known(schema)[-1]


def check(schema: str, database: Database) -> None:
    """Check that the database has the schema that this release needs; a newer one (mid-upgrade) is fine. Raises
    daemon.DbSchemaBehind."""
    have, ours = current(schema, database), known(schema)
    if have != ours[-1] and (have is None or have in ours):
        raise errors.daemon.DbSchemaBehind(schema=schema, have=have or "nothing", want=ours[-1],
                                           command="api_db" if schema == "api" else "db")


def product(database: Database) -> str:
    """Return the database's name and version, in one round trip."""
    with database.reading() as connection:
        if database.dialect == "sqlite":
            return f"SQLite {connection.execute(sa.text('select sqlite_version()')).scalar_one()}"
        return str(connection.execute(sa.text("select version()")).scalar_one())
