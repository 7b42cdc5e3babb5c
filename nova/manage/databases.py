"""Databases that commands work on, opened when needed.

The cell database is that of ``[database]``, except in configuration files of an API tier, whose ``[database]`` is
cell0's: deployment tools that know several cells write such files. Cell0 has no hosts, so commands that read hosts and
servers use the URL that is recorded for the first cell.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from nova import errors, failures
from nova.cmd.conductor_hosts import cells_wrap, configured_urls
from nova.conf._options import Options
from nova.conf.database import DatabaseUrl
from nova.db.host import cell_mappings
from nova.db.schema import revisions
from nova.db.sql.engine import Database
from nova.model.host.cell_urls import filled, of_one_database
from nova.model.host.cells import CELL, CELL0, CellMapping
from nova.model.host.sealed_cells import url_of

if TYPE_CHECKING:
    from nova.conductor.upkeep.allocation_audit import Stores


def database_of(options: Options, schema: str) -> Database:
    """Return the configured database of ``schema`` (api or cell). Raises config.Missing if its URL is not set."""
    from nova.cmd.conductor_databases import database

    return database(options, schema)


def serving(options: Options, schema: str) -> Database:
    """Return the database of ``schema`` that has the servers. Raises config.Missing; DatabaseUnavailable if the cell
    records cannot be read."""
    url = _recorded(options) if schema == "cell" else None
    return Database(url, schema=schema) if url else database_of(options, schema)


def synced(options: Options, schema: str) -> Database:
    """Return the serving database after a check that it has this release's schema. Raises daemon.DbSchemaBehind."""
    database = serving(options, schema)
    revisions.check(schema, database)
    return database


def stores(options: Options) -> Stores:
    """Return both serving databases, with the cell of the second one. With several cells, print on standard error which
    one the command is about. Raises config.Missing, config.Unusable; daemon.DbSchemaBehind."""
    from nova.conductor.upkeep.allocation_audit import Stores

    api, cell = synced(options, "api"), synced(options, "cell")
    return Stores(api, cell, _cell_of(options, api, cell))


def one_cell(options: Options) -> Database:
    """Return the serving cell database, with the same line on standard error. Conductors of a cell may lack the api
    database, which knows the others."""
    return stores(options).cell if options.api_database.connection else synced(options, "cell")


def _cell_of(options: Options, api: Database, cell: Database) -> str:
    """Return the UUID of the recorded cell that has this database; with one cell, that is the first one."""
    with api.reading() as tx:
        found = cell_mappings.known(tx)
    if found.keys() <= {CELL, CELL0}:
        return CELL
    wrap, urls = cells_wrap(options, api), configured_urls(options)
    mine = [one for one in found.values() if one.uuid != CELL0 and of_one_database(
        url_of(wrap, one, "database_connection", urls), cell.url)]
    if not mine:
        raise errors.config.Unusable(option="[database]connection", reason="It is the database of no recorded cell. "
                                     "Correct the record with: nova-manage cell_v2 update_cell")
    sys.stderr.write(f"This is about cell {mine[0].name or mine[0].uuid} alone. For another cell, run the command with "
                     "the configuration of its conductors.\n")
    return mine[0].uuid


def of_cell(options: Options, url: str) -> Database:
    """Return a cell's database by its recorded URL, after a check that it has this release's schema; if it is the
    configured one, with the configuration's user and password. Raises config.Missing if the URL is empty;
    config.Unusable; daemon.DbSchemaBehind."""
    own = not url or of_one_database(url, options.database.connection or "")
    database = database_of(options, "cell") if own else Database(_usable(url), schema="cell")
    revisions.check("cell", database)
    return database


def recorded_cell(options: Options, uuid: str) -> Database:
    """Return the database of the recorded cell with this UUID. Raises cell.NotOne if there is none; config.Missing,
    config.Unusable, daemon.DbSchemaBehind and others."""
    api = synced(options, "api")
    try:
        with api.reading() as tx:
            known = cell_mappings.known(tx)
        if uuid not in known:
            raise errors.cell.NotOne(count=0, cell=uuid)
        return of_cell(options, url_of(cells_wrap(options, api), known[uuid], "database_connection",
                                       configured_urls(options)))
    finally:
        api.dispose()


def given_cell(options: Options, url: str) -> Database:
    """Return the cell database of ``--database_connection``, a URL or a template of the configured one. Raises
    config.Unusable."""
    with failures.replaced(ValueError, lambda error: errors.config.Unusable(option="--database_connection",
                                                                            reason=f"{error}.")):
        return Database(str(DatabaseUrl()(filled(url, options.database.connection or ""))), schema="cell")


class CellsOfBackup(NamedTuple):
    """The cell whose database a backup has, and the recorded cells whose databases it does not have. ``apart``: its
    database is not ``[database]``."""

    uuid: str
    apart: bool
    others: Sequence[CellMapping]


def cells_of_backup(options: Options, cell: Database) -> CellsOfBackup:
    """Return the cell of this database, and the others by name. Cell0 is one of them only if servers begin there. If no
    key decrypts the records, the cells cannot be told apart: no UUID, and no others."""
    api = synced(options, "api")
    try:
        with api.reading() as tx:
            known = [one for one in cell_mappings.known(tx).values() if one.uuid != CELL0 or one.is_entry]
        apart = not of_one_database(cell.url, options.database.connection or "")
        if len(known) < 2:
            return CellsOfBackup(CELL, apart, ())
        with contextlib.suppress(errors.config.CellUrlSealed, errors.config.GeneratedCellKey):
            wrap, urls = cells_wrap(options, api), configured_urls(options)
            mine = {one.uuid for one in known
                    if of_one_database(url_of(wrap, one, "database_connection", urls), cell.url)}
            others = sorted((one for one in known if one.uuid not in mine), key=lambda one: one.name)
            return CellsOfBackup(min(mine, key=lambda uuid: uuid != CELL, default=""), apart, others)
        return CellsOfBackup("", apart, ())
    finally:
        api.dispose()


def _usable(url: str) -> str:
    with failures.replaced(ValueError, lambda error: errors.config.Unusable(
            option="The recorded database_connection of a cell",
            reason=f"{error}. Correct it with: nova-manage cell_v2 update_cell")):
        return str(DatabaseUrl()(url))


def _recorded(options: Options) -> str | None:
    """Return the recorded URL of the first cell if ``[database]`` is cell0's; else, or if none is recorded, None."""
    own = options.database.connection
    if not own or not options.api_database.connection:
        return None
    api = database_of(options, "api")
    try:
        revisions.check("api", api)
        with api.reading() as tx:
            cells = cell_mappings.by_uuid(tx)
        urls = _urls(options, api, cells) if CELL in cells and CELL0 in cells else {}
    except errors.daemon.DbSchemaBehind:
        return None
    finally:
        api.dispose()
    if not of_one_database(urls.get(CELL0, ""), own) or of_one_database(urls[CELL], own):
        return None
    return _usable(urls[CELL])


def _urls(options: Options, api: Database, cells: Mapping[str, CellMapping]) -> dict[str, str]:
    """Return the databases of cell0 and the first cell. Empty if no key decrypts them and cell0 is not the entry:
    ``[database]`` was not cell0's when it was recorded, so the record does not matter."""
    lost = () if cells[CELL0].is_entry else (errors.config.GeneratedCellKey, errors.config.CellUrlSealed)
    with contextlib.suppress(*lost):
        wrap, urls = cells_wrap(options, api), configured_urls(options)
        return {uuid: url_of(wrap, cells[uuid], "database_connection", urls) for uuid in (CELL0, CELL)}
    return {}
