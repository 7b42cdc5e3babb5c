"""Commands of ``nova-manage cell_v2`` about hosts and servers, which are in each cell's own database.

If a cell does not answer, a line of the output says so, and the other cells are still read.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
from collections.abc import Callable, Iterator
from typing import NamedTuple, TypeVar

from nova import errors, failures
from nova.conf._options import Options
from nova.db.host import cell_mappings, services
from nova.db.placement import audits
from nova.db.quota import ledger
from nova.db.sql.engine import Connection, Database, DatabaseUnavailable
from nova.manage.cell_store import CellStore, Say
from nova.manage.command import Table
from nova.model.host.cells import CELL, CELL0, FIRST, CellMapping
from nova.model.host.sealed_cells import url_of
from nova.model.security.secret_wrap import SecretWrap

T = TypeVar("T")
#: (the configuration, a cell's database URL) -> its database. Raises config.Unusable; DbSchemaBehind;
#: DatabaseUnavailable.
OpenCell = Callable[[Options, str], Database]

UNKNOWN, HAS_HOSTS, HAS_SERVERS, NO_ANSWER = 1, 2, 3, 4  # delete_cell
NOT_MAPPED = 1  # verify_instance
NO_CELL, NO_HOST, HOST_STAYS = 1, 2, 4  # delete_host, list_hosts
NO_CELL_TO_SEARCH = 1  # discover_hosts


class CellContents(NamedTuple):
    """The contents of the recorded cells."""

    store: CellStore
    open_cell: OpenCell

    def cells(self) -> list[CellMapping]:
        """Return the cells with hosts, by name. The first one is included before anything is recorded."""
        found = {CELL: FIRST, **self.store.known()}
        found.pop(CELL0, None)
        return sorted(found.values(), key=lambda one: one.name)

    def with_servers(self) -> list[CellMapping]:
        """Return the cells that may have servers: these, and cell0 if it is the entry."""
        return [*self.cells(), *(one for one in self.store.known().values() if one.uuid == CELL0 and one.is_entry)]

    def read(self, cells: list[CellMapping], query: Callable[[Connection], T], say: Say) -> list[tuple[CellMapping, T]]:
        """Return the results of a query in these cells; print which of them do not answer."""
        found: list[tuple[CellMapping, T]] = []
        wrap = self.store.reader()
        for cell in cells:
            report = functools.partial(_report, cell, say)
            with (failures.parked(report, on=errors.NovaError, but=errors.config.Missing),
                  self._opened(wrap, cell) as database, database.reading() as tx):
                found.append((cell, query(tx)))
        return found

    def opened(self, cell: CellMapping) -> contextlib.AbstractContextManager[Database]:
        """Provide the database of a cell. Raises DatabaseUnavailable, config.CellUrlSealed and others."""
        return self._opened(self.store.reader(), cell)

    @contextlib.contextmanager
    def _opened(self, wrap: SecretWrap, cell: CellMapping) -> Iterator[Database]:
        database = self.open_cell(self.store.options, url_of(wrap, cell, "database_connection", self.store.urls))
        try:
            yield database
        finally:
            database.dispose()


def _report(cell: CellMapping, say: Say, error: errors.NovaError) -> None:
    reason = error.reason if isinstance(error, DatabaseUnavailable) else ""
    say(f"cell {cell.name or cell.uuid} does not answer: {reason or error.message}")


def called(cell: CellMapping) -> str:
    """Return the cell's name and UUID, for messages."""
    return f"{cell.name or 'without a name'} ({cell.uuid})"


def unknown(uuid: str | None) -> str:
    """Return the message about a cell that is not recorded."""
    return f"Unknown cell {uuid or 'without a uuid'}: see nova-manage cell_v2 list_cells."


def is_unknown(store: CellStore, uuid: str | None, say: Say) -> bool:
    """Return whether ``--cell_uuid`` is unknown, and print that. The first cell is known before it is recorded."""
    if found := uuid not in (None, CELL, *store.known()):
        say(unknown(uuid))
    return found


def _hosts_of(contents: CellContents, uuid: str | None, say: Say) -> list[tuple[CellMapping, str]]:
    """Return the compute hosts of one cell, or of all, by the names of cells and hosts."""
    cells = [cell for cell in contents.cells() if uuid in (None, cell.uuid)]
    return [(cell, host) for cell, hosts in contents.read(cells, _hosts, say) for host in hosts]


def _hosts(tx: Connection) -> list[str]:
    return sorted({one.host for one in services.releases(tx) if one.binary == services.COMPUTE})


# -- commands

def list_hosts(contents: CellContents, given: argparse.Namespace, say: Say, table: Table) -> int:
    """List hosts with a nova-compute service, by cell and name; below the table, the cells that do not answer. Return
    0; 1 if ``--cell_uuid`` is unknown."""
    if is_unknown(contents.store, given.cell_uuid, say):
        return NO_CELL
    silent: list[str] = []
    hosts = _hosts_of(contents, given.cell_uuid, silent.append)
    table(("Cell Name", "Cell UUID", "Hostname"), [(cell.name, cell.uuid, host) for cell, host in hosts])
    for line in silent:
        say(line)
    return 0


def discover_hosts(contents: CellContents, given: argparse.Namespace, say: Say) -> int:
    """Print that there is nothing to discover, and with ``--verbose`` the hosts, which join automatically. Return 0; 1
    if ``--cell_uuid`` is unknown."""
    if is_unknown(contents.store, given.cell_uuid, say):
        return NO_CELL_TO_SEARCH
    for cell, host in _hosts_of(contents, given.cell_uuid, say) if given.verbose else ():
        say(f"Host {host} is in cell {called(cell)}.")
    say("Nothing to discover: hosts join a cell by registering there.")
    return 0


def verify_instance(contents: CellContents, given: argparse.Namespace, say: Say) -> int:
    """Return 0 if the server exists, else 1; print nothing with ``--quiet``. The api database tells its cell; cells are
    searched for servers that it does not know."""
    with contents.store.api.reading() as tx:
        uuid = ledger.cell_of(tx, given.uuid)
    tell: Say = (lambda _line: None) if given.quiet else say
    if uuid is None:
        searched = contents.read(contents.with_servers(), lambda tx: audits.server_exists(tx, given.uuid), tell)
        found = next((cell for cell, there in searched if there), None)
    else:
        found = {CELL: FIRST, **contents.store.known()}.get(uuid or CELL, CellMapping(uuid, ""))
    tell(f"Instance {given.uuid} is in cell {called(found)}." if found
         else f"Instance {given.uuid} is in no cell: the server does not exist.")
    return 0 if found else NOT_MAPPED


def delete_cell(contents: CellContents, given: argparse.Namespace, say: Say) -> int:
    """Delete the record of a cell. Return 0; 1 for an unknown cell; 2 if it has hosts, unless ``--force``; 3 if it has
    servers; 4 if its database does not answer, unless ``--force``: then the api database tells whether it has
    servers."""
    store, cell = contents.store, contents.store.known().get(given.cell_uuid)
    if cell is None:
        say(unknown(given.cell_uuid))
        return UNKNOWN
    has_database = cell.uuid != CELL0 or cell.is_entry
    looked = [found for _cell, found in contents.read([cell] if has_database else [], _inhabitants, say)]
    with store.api.reading() as tx:
        has_servers = ledger.any_open(tx, ("", CELL) if cell.uuid == CELL else (cell.uuid,))
    hosts = sum(found.hosts for found in looked)
    kept = [reason for reason, holds in (
        (Kept(HAS_SERVERS, "it has servers"), has_servers or any(found.has_servers for found in looked)),
        (Kept(HAS_HOSTS, f"it has {hosts} compute hosts"), hosts and not given.force),
        (Kept(NO_ANSWER, "its hosts are unknown"), has_database and not looked and not given.force)) if holds]
    if kept:
        say(f"The record of cell {called(cell)} is kept: {kept[0].reason}.")
        return kept[0].status
    store.api.transact(lambda tx: cell_mappings.delete(tx, cell.uuid))
    say(f"The record of cell {cell.uuid} is deleted."
        + (f" Its {hosts} compute hosts stay registered in its database." if hosts else ""))
    return 0


class Kept(NamedTuple):
    """The reason to keep a cell's record, and the exit status."""

    status: int
    reason: str


class Inhabitants(NamedTuple):
    """The number of compute hosts in a cell, and whether it has servers."""

    hosts: int
    has_servers: bool


def _inhabitants(tx: Connection) -> Inhabitants:
    return Inhabitants(len(_hosts(tx)), audits.any_server(tx))


def delete_host(contents: CellContents, given: argparse.Namespace, say: Say) -> int:
    """Print how to remove a host, without deleting anything. Return 4; 1 if ``--cell_uuid`` is unknown; 2 if the host
    is in no such cell."""
    if is_unknown(contents.store, given.cell_uuid, say):
        return NO_CELL
    found = [cell for cell, host in _hosts_of(contents, given.cell_uuid, say) if host == given.host]
    if not found:
        say(f"Host {given.host} is not in the cell." if given.cell_uuid else f"Host {given.host} is in no cell.")
        return NO_HOST
    say(f"Host {given.host} leaves cell {called(found[0])} with its service: drain it (nova-manage host drain "
        f"{given.host}), then openstack compute service delete ID.")
    return HOST_STAYS
