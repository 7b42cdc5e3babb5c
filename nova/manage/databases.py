"""Databases that commands work on, opened when needed.

The cell database is that of ``[database]``, except in configuration files of an API tier, whose ``[database]`` is
cell0's: deployment tools that know several cells write such files. In this release cell0 has no servers, so commands
that read servers use the URL that is recorded for the one cell.
"""

from __future__ import annotations

from nova import errors, failures
from nova.conf._options import Options
from nova.conf.database import DatabaseUrl
from nova.db.host import cell_mappings
from nova.db.schema import migrate
from nova.db.sql.engine import Database
from nova.manage.cell_urls import filled, of_one_database
from nova.model.host.cells import CELL, CELL0


def database_of(options: Options, schema: str) -> Database:
    """Return the configured database of ``schema`` (api or cell). Raises config.Missing if its URL is not set."""
    from nova.cmd.conductor import database

    return database(options, schema)


def serving(options: Options, schema: str) -> Database:
    """Return the database of ``schema`` that has the servers. Raises config.Missing; DatabaseUnavailable if the cell
    records cannot be read."""
    url = _recorded(options) if schema == "cell" else None
    return Database(url, schema=schema) if url else database_of(options, schema)


def synced(options: Options, schema: str) -> Database:
    """Return the serving database after a check that it has this release's schema. Raises daemon.DbSchemaBehind."""
    database = serving(options, schema)
    migrate.check(schema, database)
    return database


def _recorded(options: Options) -> str | None:
    """Return the recorded URL of the cell if ``[database]`` is cell0's; else, or if none is recorded, None."""
    own = options.database.connection
    if not own or not options.api_database.connection:
        return None
    api = database_of(options, "api")
    try:
        migrate.check("api", api)
        with api.reading() as tx:
            cells = cell_mappings.by_uuid(tx)
    except errors.daemon.DbSchemaBehind:
        return None
    finally:
        api.dispose()
    if CELL not in cells or CELL0 not in cells:
        return None
    urls = {uuid: filled(cells[uuid].database_connection, own) for uuid in (CELL, CELL0)}
    if not of_one_database(urls[CELL0], own) or of_one_database(urls[CELL], own):
        return None
    with failures.replaced(ValueError, lambda error: errors.config.Unusable(
            option=f"The recorded database_connection of cell {CELL}",
            reason=f"{error}. Correct it with: nova-manage cell_v2 update_cell")):
        return str(DatabaseUrl()(urls[CELL]))
