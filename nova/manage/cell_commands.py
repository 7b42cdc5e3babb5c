"""``nova-manage cell_v2``: commands for deployment tools and operators' scripts, which call them on every cloud.

This release has one cell, which hosts join by registering. Tools' records of it (its name, its URLs) and of cell0 are
stored and shown to them. Services do not read the records; nova-manage and nova-status do if ``[database]`` is cell0's
(:mod:`nova.manage.databases`). Tables and exit codes are upstream's (nova-manage(1)), because tools parse them.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable

from nova.conf._options import Options
from nova.db.host import cell_mappings, services
from nova.db.placement import audits
from nova.db.sql.engine import Database
from nova.manage import cell_urls
from nova.manage.cell_urls import CellUrls, filled
from nova.manage.command import Argument, Command, Run, Table, argument
from nova.model.host.cells import CELL, CELL0, NAME, CellMapping

#: The one cell of a cloud without a record of it.
THE_CELL = CellMapping(uuid=CELL, name=NAME)

Say = Callable[[str], None]
#: (the configuration, a schema) -> its database.
DatabaseOf = Callable[[Options, str], Database]

BAD_URL, EXISTS = 1, 2  # create_cell
NO_SECOND = 1
UNKNOWN, HAS_HOSTS, HAS_SERVERS = 1, 2, 3  # delete_cell; update_cell: UNKNOWN
BAD_CHANGE = 3  # update_cell
NOT_MAPPED = 1  # verify_instance
NO_CELL, NO_HOST, HOST_STAYS = 1, 2, 4  # delete_host, list_hosts
BAD_COUNT, NO_CELL_TO_MAP = 127, 255  # map_instances: 1 would mean that the call must be repeated
NO_CELL_TO_SEARCH = 1  # discover_hosts


# -- records

def known(api: Database) -> dict[str, CellMapping]:
    """Return the cells by UUID. The one cell is included once it is recorded or has hosts: it has a name even in a
    cloud deployed without ``create_cell``."""
    with api.reading() as tx:
        found = cell_mappings.by_uuid(tx)
        return {CELL: THE_CELL, **found} if CELL not in found and cell_mappings.hosts_report(tx) else found


def _record_cell0(api: Database, urls: CellUrls, connection: str | None = None) -> bool:
    """Record cell0. Return False if it was recorded before."""
    cell0 = CellMapping(uuid=CELL0, name="cell0", transport_url=cell_urls.NO_TRANSPORT, database_connection=_kept(
        connection or cell_urls.with_suffix(urls.database_connection), urls.database_connection))
    return api.transact(lambda tx: cell_mappings.add(tx, cell0))


def _kept(url: str | None, configured: str) -> str | None:
    """Return the URL or template to store (default: the configured URL). None: use nova.conf's URL when it is read."""
    own = not url or url == configured
    if own and "{" in configured:  # it would be taken for a template
        return None
    made = cell_urls.as_template(url or configured, configured)
    return url if made is None and not own else made


# -- commands that record

def map_cell0(api: Database, urls: CellUrls, given: argparse.Namespace, say: Say) -> int:
    """Record cell0 and return 0, also if it was recorded before; the output shows which."""
    say("Cell0 is recorded. Servers without a valid host are stored in the one cell nevertheless."
        if _record_cell0(api, urls, given.database_connection) else "Cell0 is already setup")
    return 0


def create_cell(api: Database, urls: CellUrls, given: argparse.Namespace, say: Say) -> int:
    """Record the name (empty without ``--name``) and URLs of the one cell; with ``--verbose`` print only its UUID.
    Return 0; 2 if it was recorded before; 1 if a URL is missing, or it would be a second cell."""
    transport, connection = given.transport_url or urls.transport_url, given.database_connection or \
        urls.database_connection
    for option, url in (("transport-url", transport), ("database_connection", connection)):
        if not url:
            say(f"--{option} is missing, and the configuration does not have it either.")
            return BAD_URL
    if given.disabled:
        say("The one cell cannot be disabled: disable hosts (openstack compute service set --disable).")
        return BAD_URL
    wanted = CellMapping(uuid=CELL, name=given.name or "", transport_url=_kept(given.transport_url, urls.transport_url),
                         database_connection=_kept(given.database_connection, urls.database_connection))
    if not api.transact(lambda tx: cell_mappings.add(tx, wanted)):
        return _refuse_second(known(api)[CELL], wanted, say)
    say(CELL if given.verbose else f"Cell {_called(wanted)} is recorded ({CELL}). Hosts join it by registering.")
    return 0


def _refuse_second(have: CellMapping, wanted: CellMapping, say: Say) -> int:
    alike = have.transport_url == wanted.transport_url or have.database_connection == wanted.database_connection
    if have.name == wanted.name or alike:
        say(f"The cell already exists: {_called(have)} ({CELL}). Change it with update_cell.")
        return EXISTS
    say(f"A second cell cannot be created: this release serves one, {_called(have)} ({CELL}).")
    return NO_SECOND


def _called(mapping: CellMapping) -> str:
    return mapping.name or "without a name"


def update_cell(api: Database, urls: CellUrls, given: argparse.Namespace, say: Say) -> int:
    """Change the record of a cell. Return 0; 1 for an unknown cell; 3 for --disable, which is not supported.

    An omitted URL is set to the configured one, if any; cell0, which has no broker, keeps its transport."""
    have = known(api).get(given.cell_uuid)
    if have is None:
        say(f"Unknown cell {given.cell_uuid or 'without a uuid'}: see nova-manage cell_v2 list_cells.")
        return UNKNOWN
    if given.disable:
        say("A cell cannot be disabled here: disable hosts (openstack compute service set --disable).")
        return BAD_CHANGE
    changed = have._replace(name=have.name if given.name is None else given.name)
    if given.transport_url or (urls.transport_url and have.uuid != CELL0):
        changed = changed._replace(transport_url=_kept(given.transport_url, urls.transport_url))
    if given.database_connection or urls.database_connection:
        changed = changed._replace(database_connection=_kept(given.database_connection, urls.database_connection))
    api.transact(lambda tx: cell_mappings.put(tx, changed))
    say(f"Cell {_called(changed)} ({have.uuid}) is updated. Services connect to the URLs in nova.conf and "
        "nova-conductor.conf.")
    return 0


def record_all(api: Database, urls: CellUrls, given: argparse.Namespace, say: Say) -> int:
    """Record both cells, unless they are recorded; always return 0."""
    _record_cell0(api, urls)
    cell = CellMapping(uuid=CELL, name=getattr(given, "name", None) or "",
                       transport_url=_kept(given.transport_url, urls.transport_url),
                       database_connection=_kept(None, urls.database_connection))
    made = api.transact(lambda tx: cell_mappings.add(tx, cell))
    say("Both cells are recorded; hosts join the one cell by registering." if made
        else "Nothing to map: both cells are recorded, and hosts join the one cell by registering.")
    return 0


def delete_cell(api: Database, cell: Database, given: argparse.Namespace, say: Say) -> int:
    """Delete the record of a cell. Return 0; 1 for an unknown cell; 2 if it has hosts; 3 if it has servers."""
    if given.cell_uuid not in known(api):
        say(f"Unknown cell {given.cell_uuid or 'without a uuid'}: see nova-manage cell_v2 list_cells.")
        return UNKNOWN
    if given.cell_uuid == CELL:
        if hosts := _hosts(cell):
            say(f"The one cell has {len(hosts)} compute hosts, so its record is kept.")
            return HAS_HOSTS
        with cell.reading() as tx:
            if audits.any_server(tx):
                say("The one cell has servers, so its record is kept.")
                return HAS_SERVERS
    api.transact(lambda tx: cell_mappings.delete(tx, given.cell_uuid))
    say(f"The record of cell {given.cell_uuid} is deleted.")
    return 0


# -- commands that read

def list_cells(api: Database, urls: CellUrls, given: argparse.Namespace, table: Table) -> int:
    """List the cells by name. Passwords are shown only with --verbose."""
    def shown(recorded: str | None, url: str) -> str:
        whole = filled(recorded, url)
        return whole if given.verbose else cell_urls.without_passwords(whole)
    table(("Name", "UUID", "Transport URL", "Database Connection", "Disabled"),
          [(one.name, one.uuid, shown(one.transport_url, urls.transport_url),
            shown(one.database_connection, urls.database_connection), False)
           for one in sorted(known(api).values(), key=lambda one: one.name)])
    return 0


def list_hosts(api: Database, cell: Database, given: argparse.Namespace, say: Say, table: Table) -> int:
    """List hosts with a nova-compute service, by name. Return 0; 1 if ``--cell_uuid`` is unknown."""
    if _is_unknown(api, given.cell_uuid, say):
        return NO_CELL
    hosts = [] if given.cell_uuid == CELL0 else _hosts(cell)
    table(("Cell Name", "Cell UUID", "Hostname"), [(_the_cell(api).name, CELL, host) for host in hosts])
    return 0


def _is_unknown(api: Database, uuid: str | None, say: Say) -> bool:
    """Return whether ``--cell_uuid`` is unknown, and print that."""
    unknown = uuid not in (None, CELL, *known(api))
    if unknown:
        say(f"Unknown cell {uuid or 'without a uuid'}: see nova-manage cell_v2 list_cells.")
    return unknown


def _the_cell(api: Database) -> CellMapping:
    return known(api).get(CELL, THE_CELL)


def discover_hosts(api: Database, cell: Database, given: argparse.Namespace, say: Say) -> int:
    """Print that there is nothing to discover, and with ``--verbose`` the hosts, which join automatically. Return 0; 1
    if ``--cell_uuid`` is unknown."""
    if _is_unknown(api, given.cell_uuid, say):
        return NO_CELL_TO_SEARCH
    for host in _hosts(cell) if given.verbose and given.cell_uuid != CELL0 else ():
        say(f"Host {host} is in cell {_called(_the_cell(api))} ({CELL}).")
    say("Nothing to discover: hosts join the one cell by registering.")
    return 0


def map_instances(api: Database, given: argparse.Namespace, say: Say) -> int:
    """Print that there is nothing to map. Return 0; 127 for an invalid ``--max-count``; 255 for an unknown cell."""
    if given.max_count is not None and given.max_count < 1:
        say(f"--max-count {given.max_count}: must be a number above 0.")
        return BAD_COUNT
    if _is_unknown(api, given.cell_uuid, say):
        return NO_CELL_TO_MAP
    say("Nothing to map: all servers are in the one cell.")
    return 0


def verify_instance(api: Database, cell: Database, given: argparse.Namespace, say: Say) -> int:
    """Return 0 if the server exists, else 1; print nothing with ``--quiet``."""
    with cell.reading() as tx:
        found = audits.server_exists(tx, given.uuid)
    if not given.quiet:
        say(f"Instance {given.uuid} is in cell {_called(_the_cell(api))} ({CELL})." if found
            else f"Instance {given.uuid} is in no cell: the server does not exist.")
    return 0 if found else NOT_MAPPED


def delete_host(cell: Database, given: argparse.Namespace, say: Say) -> int:
    """Print how to remove a host, without deleting anything. Return 4; 1 if ``--cell_uuid`` is another cell; 2 if the
    host is unknown."""
    if given.cell_uuid not in (None, CELL):
        say(f"All hosts are in the one cell, {CELL}.")
        return NO_CELL
    if given.host not in _hosts(cell):
        say(f"Host {given.host} is not in the cell.")
        return NO_HOST
    say(f"Host {given.host} leaves the cell with its service: drain it (nova-manage host drain {given.host}), then "
        "openstack compute service delete ID.")
    return HOST_STAYS


def _hosts(cell: Database) -> list[str]:
    with cell.reading() as tx:
        return sorted({one.host for one in services.releases(tx) if one.binary == services.COMPUTE})


# -- the table

def actions(database_of: DatabaseOf, say: Say, table: Table) -> dict[str, Command]:
    """Return the rows of nova-manage's command table. Each command opens only the databases that it needs."""
    def api_with_urls(work: Callable[..., int], way: Say | Table = say) -> Run:
        return lambda options, given: work(database_of(options, "api"), cell_urls.configured(options), given, way)

    def both(work: Callable[..., int], *ways: Say | Table) -> Run:
        return lambda options, given: work(database_of(options, "api"), database_of(options, "cell"), given, *ways)

    def in_api(work: Callable[..., int]) -> Run:
        return lambda options, given: work(database_of(options, "api"), given, say)
    return {
        "simple_cell_setup": Command(api_with_urls(record_all), "record both cells", (_TRANSPORT,)),
        "map_cell0": Command(api_with_urls(map_cell0), "record cell0", (_CONNECTION,)),
        "map_cell_and_hosts": Command(api_with_urls(record_all), "record both cells", (_TRANSPORT, _NAME, _VERBOSE)),
        "map_instances": Command(in_api(map_instances), "no effect; prints the reason", (
            _cell("as list_cells shows it"),
            argument("--max-count", type=int, metavar="N", help="ignored; accepted for compatibility"),
            _accepted("--reset"))),
        "discover_hosts": Command(both(discover_hosts, say), "no effect; prints the reason", (
            _cell("as list_cells shows it"), argument("--verbose", action="store_true", help="print the hosts"),
            _accepted("--strict"), _accepted("--by-service"))),
        "create_cell": Command(api_with_urls(create_cell), "record the one cell's name and URLs", (
            _NAME, _CONNECTION, _TRANSPORT, _VERBOSE, argument("--disabled", action="store_true", help="refused"))),
        "update_cell": Command(api_with_urls(update_cell), "change the recorded name or URLs of a cell", (
            _cell("as list_cells shows it"), argument("--name", help="the new name"), _TRANSPORT, _CONNECTION,
            argument("--disable", action="store_true", help="refused"), _accepted("--enable"))),
        "list_cells": Command(api_with_urls(list_cells, table), "list the one cell and cell0, once they are recorded", (
            argument("--verbose", action="store_true", help="show passwords in URLs"),)),
        "list_hosts": Command(both(list_hosts, say, table), "list the compute hosts of the one cell", (
            _cell("only hosts of this cell"),)),
        "verify_instance": Command(both(verify_instance, say), "check that a server is in the one cell", (
            argument("--uuid", required=True), argument("--quiet", action="store_true", help="print nothing"))),
        "delete_cell": Command(both(delete_cell, say), "delete the record of a cell without hosts", (
            _cell("as list_cells shows it"), _accepted("--force"))),
        "delete_host": Command(lambda options, given: delete_host(database_of(options, "cell"), given, say),
                               "print how to remove a host", (
            _cell("UUID of the one cell"), argument("--host", required=True)))}


def _cell(words: str) -> Argument:
    return argument("--cell_uuid", metavar="UUID", help=words)


def _accepted(flag: str) -> Argument:
    return argument(flag, action="store_true", help="ignored; accepted for compatibility")


_NAME = argument("--name", help="name of the cell (default: no name)")
_TRANSPORT = argument("--transport-url", metavar="URL", help="the URL to record (default: the configured one)")
_CONNECTION = argument("--database_connection", metavar="URL",
                       help="the URL to record (default: the configured one; for cell0, with the suffix _cell0)")
_VERBOSE = argument("--verbose", action="store_true", help="print only the cell's UUID")

__all__ = ["actions"]
