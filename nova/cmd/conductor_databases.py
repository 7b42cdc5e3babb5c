"""The databases of a conductor's nova.conf, and the processes that use them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nova import errors, failures
from nova.cmd import common
from nova.conf._options import Options
from nova.conf.api_database import ApiDatabaseOptions
from nova.conf.database import DatabaseOptions, DatabaseUrl
from nova.model.host.services import DatabaseConnections

if TYPE_CHECKING:
    from nova.db.sql.engine import Database


def databases(options: Options) -> tuple[Database, Database]:
    """Return the (api, cell) databases. Raises config.Missing, with option and file, if a URL is not set."""
    return database(options, "api"), database(options, "cell")


def database(options: Options, schema: str) -> Database:
    """Return one database, which needs only its own URL. ``schema``: api or cell. Raises config.Missing as above."""
    from nova.db.sql.engine import Database

    name = {"api": "api_database", "cell": "database"}[schema]
    group: ApiDatabaseOptions | DatabaseOptions = options.api_database if schema == "api" else options.database
    if not group.connection:
        raise errors.config.Missing(option=f"[{name}]connection",
                                    cure="set it in nova-conductor.conf next to nova.conf")
    return Database(group.connection, group.max_pool_size, group.max_overflow, group.connection_recycle_time, schema)


def cell_database(options: Options, url: str) -> Database:
    """Return the database of another cell, with the same pool as the configured one's. Raises config.Unusable if the
    recorded ``url`` is none, or a template that cannot be filled."""
    from nova.db.sql.engine import Database

    group = options.database
    with failures.replaced(ValueError, lambda error: errors.config.Unusable(
            option="The recorded database_connection of a cell",
            reason=f"{error}. Correct it with: nova-manage cell_v2 update_cell")):
        return Database(_checked(url), group.max_pool_size, group.max_overflow, group.connection_recycle_time, "cell")


def _checked(url: str) -> str:
    if not url:
        raise ValueError("it is empty")
    return str(DatabaseUrl()(url))


def serves_a_cell(options: Options) -> bool:
    """Return whether this is a cell conductor: nova.conf has no api database."""
    return not options.api_database.connection


def check_schema(*databases: Database) -> None:
    """Check the databases' schemas. Raises service.CannotStart if one is older than this release; Unavailable."""
    from nova.db.schema import revisions

    with failures.replaced(errors.daemon.DbSchemaBehind,
            lambda error: errors.service.CannotStart(reason=error.message)):
        for one in databases:
            revisions.check(one.schema, one)


def workers(options: Options) -> int:
    """Return the number of worker processes of a conductor."""
    return options.conductor.workers or common.cpus()


def connections(options: Options) -> DatabaseConnections:
    """Return the maximum number of connections of all workers; a worker's lease has its own connection to the cell. A
    cell conductor has neither a lease nor an api database."""
    api, cell = (group.max_pool_size + group.max_overflow for group in (options.api_database, options.database))
    if serves_a_cell(options):
        return DatabaseConnections(api=0, cell=workers(options) * cell)
    return DatabaseConnections(api=workers(options) * api, cell=workers(options) * (cell + 1))
