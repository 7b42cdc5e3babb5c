"""Creation of a schema in one step, without its history: for the databases of a cloud in one process, which starts in a
second or two and has SQLite. All others are migrated (:mod:`nova.db.schema.migrate`)."""

from __future__ import annotations

import sqlalchemy as sa

from nova.db.models import api, cell
from nova.db.schema.revisions import current, known, version_table
from nova.db.sql.engine import Connection, Database

_TABLES = {"api": api.metadata, "cell": cell.metadata}


def create_or_migrate(schema: str, database: Database) -> None:
    """Create the tables of an empty database, and migrate any other one to this release. Safe to repeat after a crash
    at any point. Raises daemon.DbSchemaAhead."""
    found, newest = current(schema, database), known(schema)[-1]
    if found is None:
        database.transact(lambda tx: _create(tx, schema, newest))
    elif found != newest:
        from nova.db.schema import migrate

        migrate.sync(schema, database)


def _create(tx: Connection, schema: str, revision: str) -> None:
    _TABLES[schema].create_all(tx)
    name = version_table(schema)
    versions = sa.Table(name, sa.MetaData(), sa.Column("version_num", sa.String(32), nullable=False),
                        sa.PrimaryKeyConstraint("version_num", name=f"{name}_pkc"))
    versions.create(tx, checkfirst=True)
    tx.execute(sa.insert(versions).values(version_num=revision))
