"""``nova-manage cell_v2``: commands for deployment tools and operators' scripts, which call them on every cloud.

They record the database and the broker of each cell, which conductors and these commands read. Hosts join a cell by
registering there. Tables and exit codes are upstream's (nova-manage(1)), because tools parse them.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from typing import NamedTuple

from nova import errors, failures
from nova.conf._options import Options
from nova.db.host import cell_mappings
from nova.db.sql.engine import Connection, Database
from nova.manage import cell_contents, host_moves
from nova.manage.cell_contents import CellContents, OpenCell, called
from nova.manage.cell_store import CellStore, Say, shares
from nova.manage.command import Argument, Command, Run, Table, argument
from nova.model.host.cell_urls import CellUrls, without_passwords
from nova.model.host.cells import CELL0, CellMapping
from nova.model.host.sealed_cells import sealed, url_of
from nova.model.security.secret_wrap import SecretWrap

#: (the configuration, a schema) -> its database.
DatabaseOf = Callable[[Options, str], Database]

BAD_URL, EXISTS = 1, 2  # create_cell
UNKNOWN = 1  # update_cell
BAD_CHANGE = 3  # update_cell
BAD_COUNT, NO_CELL_TO_MAP = 127, 255  # map_instances: 1 would mean that the call must be repeated

MAPPED = "hosts and servers are mapped in the transactions that create them."
UNREADABLE = "undecryptable"  # in place of a URL; without blanks, because tools split rows at them


# -- commands that record

def map_cell0(cells: CellStore, given: argparse.Namespace, say: Say) -> int:
    """Record cell0 and return 0, also if it was recorded before; the output shows which."""
    say("Cell0 is recorded." if cells.record_cell0(given.database_connection) else "Cell0 is already setup")
    return 0


def create_cell(cells: CellStore, given: argparse.Namespace, say: Say) -> int:
    """Record the name (empty without ``--name``) and URLs of a cell; with ``--verbose`` print only its UUID. Return 0;
    2 if a recorded cell has the same database or broker; 1 if a URL is missing, or the first cell has to be recorded
    before."""
    urls = CellUrls(given.transport_url or cells.urls.transport_url,
                    given.database_connection or cells.urls.database_connection)
    for option, url in (("transport-url", urls.transport_url), ("database_connection", urls.database_connection)):
        if not url:
            say(f"--{option} is missing, and the configuration does not have it either.")
            return BAD_URL
    if urls == cells.urls and cells.is_of_another():
        say("The first cell has hosts but no record. Record it first, with the configuration of its conductors: "
            "nova-manage cell_v2 create_cell")
        return BAD_URL
    cell, is_new = cells.create(cells.writer(), given.name or "", urls, given.disabled)
    if not is_new:
        say(f"The cell already exists: {called(cell)} has this database or broker. Change it with update_cell.")
        return EXISTS
    say(cell.uuid if given.verbose else f"Cell {called(cell)} is recorded. Hosts join it by registering.")
    return 0


def record_all(cells: CellStore, given: argparse.Namespace, say: Say) -> int:
    """Record cell0 and the cell of this configuration, unless they are recorded; always return 0."""
    cells.record_cell0()
    urls = cells.urls._replace(transport_url=given.transport_url or cells.urls.transport_url)
    is_new = not cells.has_first() and cells.create(cells.writer(), getattr(given, "name", None) or "", urls)[1]
    say(f"{'Both cells are recorded' if is_new else 'Nothing to map: the cells are recorded'}, and {MAPPED}")
    return 0


def update_cell(cells: CellStore, given: argparse.Namespace, say: Say) -> int:
    """Change the record of a cell. Return 0; 1 for an unknown cell; 3 if both --disable and --enable are given, for
    --disable of cell0, or if another cell has one of the URLs.

    An omitted URL is set to the configured one, if any. It stays if only the state changes, or if the configuration
    is another cell's; cell0, which has no broker, keeps its transport."""
    if refused := _bad_change(given):
        say(refused)
        return BAD_CHANGE
    wrap = cells.renewer(say)

    def change(tx: Connection) -> RecordChange | None:
        cell_mappings.lock(tx)
        known = cell_mappings.known(tx)
        have = known.pop(given.cell_uuid, None)
        if have is None:
            return None
        others = cells.readable(wrap, known.values())
        changed, urls = _changed(cells, wrap, have, others, given)
        twin = next((one for one in others if have.uuid != CELL0 != one.uuid and shares(one, urls)), None)
        if twin is None:
            cell_mappings.put(tx, changed)
        if have.uuid == CELL0:
            cells.enter(tx, wrap)
        return RecordChange(have, changed, twin)
    made = cells.api.transact(change)
    if made is None:
        say(cell_contents.unknown(given.cell_uuid))
        return UNKNOWN
    return _report(made, given.disable or given.enable, say)


class RecordChange(NamedTuple):
    """A change of a record. ``twin``: a cell that already has one of the URLs, so that nothing was changed."""

    before: CellMapping
    after: CellMapping
    twin: CellMapping | None


def _report(change: RecordChange, of_state: bool, say: Say) -> int:
    if change.twin is not None:
        say(f"Cell {called(change.twin)} already has this database or broker: cells share neither.")
        return BAD_CHANGE
    is_same = of_state and change.before.disabled is change.after.disabled
    state = f": it was already {'disabled' if change.after.disabled else 'enabled'}" if is_same else ""
    say(f"Cell {called(change.after)} is updated{state}.")
    return 0


def _bad_change(given: argparse.Namespace) -> str:
    """Return why the state of a cell cannot be changed like that; empty if it can."""
    if given.disable and given.enable:
        return "A cell cannot be disabled and enabled at the same time."
    return "Cell0 cannot be disabled: no host is in it." if given.disable and given.cell_uuid == CELL0 else ""


def _changed(cells: CellStore, wrap: SecretWrap, have: CellMapping, others: list[CellMapping],
             given: argparse.Namespace) -> tuple[CellMapping, CellUrls]:
    """Return the changed record, and those of its URLs that are new; an empty one stays."""
    asked = CellUrls(given.transport_url or "", given.database_connection or "")
    default = CellUrls("", "") if given.disable or given.enable else _default(cells, have, others)
    mine = CellUrls(*(url or configured for url, configured in zip(asked, default, strict=True)))
    changed = have.with_urls(*(sealed(wrap, have.uuid, column, url) if url else getattr(have, column)
                               for column, url in mine._asdict().items()))
    changed = changed._replace(name=have.name if given.name is None else given.name,
                               disabled=given.disable or have.disabled and not given.enable)
    return changed, cells.whole(mine)


def _default(cells: CellStore, have: CellMapping, others: list[CellMapping]) -> CellUrls:
    """Return the configured URLs; empty ones if this configuration is another cell's."""
    if have.uuid == CELL0:
        return cells.urls._replace(transport_url="")
    return CellUrls("", "") if any(shares(one, cells.urls) for one in others) else cells.urls


# -- commands that print

def list_cells(cells: CellStore, given: argparse.Namespace, table: Table) -> int:
    """List the cells by name. Passwords are shown only with --verbose. A URL that no key decrypts is shown as
    "undecryptable", with the reason on standard error."""
    wrap, why = cells.reader(), dict[str, None]()

    def shown(cell: CellMapping, column: str) -> str:
        with failures.parked(lambda error: why.update({error.message: None}), on=errors.config.CellUrlSealed):
            url = url_of(wrap, cell, column, cells.urls)
            return url if given.verbose else without_passwords(url)
        return UNREADABLE
    table(("Name", "UUID", "Transport URL", "Database Connection", "Disabled"),
          [(one.name, one.uuid, *(shown(one, column) for column in CellUrls._fields), one.disabled)
           for one in sorted(cells.known().values(), key=lambda one: one.name)])
    for reason in list(why)[:1]:
        sys.stderr.write(f"{reason}\n")
    return 0


def map_instances(cells: CellStore, given: argparse.Namespace, say: Say) -> int:
    """Print that there is nothing to map. Return 0; 127 for an invalid ``--max-count``; 255 for an unknown cell."""
    if given.max_count is not None and given.max_count < 1:
        say(f"--max-count {given.max_count}: must be a number above 0.")
        return BAD_COUNT
    if cell_contents.is_unknown(cells, given.cell_uuid, say):
        return NO_CELL_TO_MAP
    say(f"Nothing to map: {MAPPED}")
    return 0


# -- the table

def actions(database_of: DatabaseOf, open_cell: OpenCell, say: Say, table: Table) -> dict[str, Command]:
    """Return the rows of nova-manage's command table. Each command opens only the databases that it needs."""
    def store(options: Options) -> CellStore:
        return CellStore.of(options, database_of(options, "api"))

    def on_records(work: Callable[..., int], way: Say | Table = say) -> Run:
        return lambda options, given: work(store(options), given, way)

    def on_cells(work: Callable[..., int], *ways: Say | Table) -> Run:
        return lambda options, given: work(CellContents(store(options), open_cell), given, *ways)
    return {
        "simple_cell_setup": Command(on_records(record_all), "record cell0 and the first cell", (_TRANSPORT,)),
        "map_cell0": Command(on_records(map_cell0), "record cell0", (_CONNECTION,)),
        "map_cell_and_hosts": Command(on_records(record_all), "record cell0 and the first cell", (
            _TRANSPORT, _NAME, _VERBOSE)),
        "map_instances": Command(on_records(map_instances), "no effect; prints the reason", (
            _cell("as list_cells shows it"),
            argument("--max-count", type=int, metavar="N", help="ignored; accepted for compatibility"),
            _accepted("--reset"))),
        "discover_hosts": Command(on_cells(cell_contents.discover_hosts, say), "no effect; prints the reason", (
            _cell("only hosts of this cell"), argument("--verbose", action="store_true", help="print the hosts"),
            _accepted("--strict"), _accepted("--by-service"))),
        "create_cell": Command(on_records(create_cell), "record a cell's name, database and broker", (
            _NAME, _CONNECTION, _TRANSPORT, _VERBOSE, argument("--disabled", action="store_true", help=_DISABLED))),
        "update_cell": Command(on_records(update_cell), "change the recorded name, URLs or state of a cell", (
            _cell("as list_cells shows it"), argument("--name", help="the new name"), _TRANSPORT, _CONNECTION,
            argument("--disable", action="store_true", help=_DISABLED),
            argument("--enable", action="store_true", help="place new servers in this cell again"))),
        "list_cells": Command(on_records(list_cells, table), "list the recorded cells", (
            argument("--verbose", action="store_true", help="show passwords in URLs"),)),
        "list_hosts": Command(on_cells(cell_contents.list_hosts, say, table), "list the compute hosts of all cells", (
            _cell("only hosts of this cell"),)),
        "verify_instance": Command(on_cells(cell_contents.verify_instance, say), "print which cell has a server", (
            argument("--uuid", required=True), argument("--quiet", action="store_true", help="print nothing"))),
        "move_hosts": Command(on_cells(host_moves.move_hosts, say), "move compute hosts with their servers to a cell", (
            argument("--cell_uuid", metavar="UUID", required=True, help="the new cell, as list_cells shows it"),
            argument("hosts", nargs="+", metavar="HOST", help="a host whose nova-compute is stopped"),
            argument("--wait", type=float, default=60.0, metavar="SECONDS",
                     help="time to wait for servers with an open operation (default: 60)"),
            argument("--dry-run", action="store_true", help="only print whether the hosts can move"))),
        "delete_cell": Command(on_cells(cell_contents.delete_cell, say), "delete the record of an empty cell", (
            _cell("as list_cells shows it"),
            argument("--force", action="store_true", help="also if the cell has compute hosts; they stay registered in "
                                                          "its database"))),
        "delete_host": Command(on_cells(cell_contents.delete_host, say), "print how to remove a host", (
            _cell("only hosts of this cell"), argument("--host", required=True)))}


def _cell(words: str) -> Argument:
    return argument("--cell_uuid", metavar="UUID", help=words)


def _accepted(flag: str) -> Argument:
    return argument(flag, action="store_true", help="ignored; accepted for compatibility")


_DISABLED = "place no new servers in this cell"
_NAME = argument("--name", help="name of the cell (default: no name)")
_TRANSPORT = argument("--transport-url", metavar="URL",
                      help="the URL to record (default: [DEFAULT]hosts_transport_url, else [DEFAULT]transport_url)")
_CONNECTION = argument("--database_connection", metavar="URL",
                       help="the URL to record (default: the configured one; for cell0, with the suffix _cell0)")
_VERBOSE = argument("--verbose", action="store_true", help="print only the cell's UUID")

__all__ = ["actions"]
