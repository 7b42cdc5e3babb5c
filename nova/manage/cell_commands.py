"""``nova-manage cell_v2``: for operators' scripts, which call it on every cloud. This release has one cell, whose
database is the conductors', and hosts are in it by registering; so there is nothing to set up, as these commands say.

Exit codes are upstream's (nova-manage(1)).
"""

from __future__ import annotations

import argparse
import re
import uuid
from collections.abc import Callable, Sequence
from typing import Any

from nova import errors
from nova.conf.base import Options
from nova.manage.command import Command, ConductorOf, argument
from nova.model.base import Library, Scope
from nova.model.servers import ServerQuery
from nova.model.services import ServiceQuery
from nova.rpc.contracts.conductor import ConductorRPC

Say = Callable[[str], None]
Table = Callable[[Sequence[str], Sequence[Sequence[Any]]], None]

NAME = "cell1"
#: The one cell's, the same on every cloud: scripts hand back what list_cells told them.
CELL = str(uuid.uuid5(uuid.NAMESPACE_DNS, "cell1.nova"))
UNKNOWN, HAS_HOSTS = 1, 2  # delete_cell
NOT_MAPPED = 1  # verify_instance
NO_CELL, NO_HOST, HAS_SERVERS = 1, 2, 4  # delete_host
#: A user's, for each of several hosts; up to the last @, which a password may have unescaped.
PASSWORD = re.compile(r"(//|,)([^:@/,]*):[^,]*@")

#: What there is nothing to do for -> why.
NOTHING = {
    "simple_cell_setup": "Nothing to set up: there is one cell, and hosts join it by registering.",
    "map_cell0": "Nothing to map: there is no cell0. Servers that no host took are in the one cell.",
    "map_cell_and_hosts": "Nothing to map: there is one cell, and hosts join it by registering.",
    "map_instances": "Nothing to map: all servers are in the one cell.",
    "discover_hosts": "Nothing to discover: hosts join the one cell by registering.",
    "create_cell": f"No cell is made: there is one, {NAME} ({CELL}). Its database and broker are those of nova.conf "
                   "and nova-conductor.conf.",
    "update_cell": "Nothing is changed: the one cell's database and broker are those of nova.conf and "
                   "nova-conductor.conf.",
}
_FLAGS = ("--verbose", "--disabled", "--disable", "--enable", "--strict", "--by-service", "--reset")
#: What upstream's commands take; it is accepted, and means nothing.
_WORDS = {
    "simple_cell_setup": ("--transport-url",),
    "map_cell0": ("--database_connection",),
    "map_cell_and_hosts": ("--transport-url", "--name", "--verbose"),
    "map_instances": ("--cell_uuid", "--max-count", "--reset"),
    "discover_hosts": ("--cell_uuid", "--verbose", "--strict", "--by-service"),
    "create_cell": ("--name", "--database_connection", "--transport-url", "--verbose", "--disabled"),
    "update_cell": ("--cell_uuid", "--name", "--transport-url", "--database_connection", "--disable", "--enable"),
}


def actions(conductor_of: ConductorOf, say: Say, table: Table) -> dict[str, Command]:
    """The rows of nova-manage's table, made of its own pieces."""
    cell, verbose = argument("--cell_uuid", help="the one cell's"), argument("--verbose", action="store_true")

    def nothing(name: str) -> Library:
        def run(options: Options, given: argparse.Namespace) -> int:
            say(NOTHING[name])
            return 0
        accepted = [argument(word, help="accepted", **({"action": "store_true"} if word in _FLAGS else {}))
                    for word in _WORDS[name]]
        return Command(run, "nothing to do here: says so", tuple(accepted))
    return {
        **{name: nothing(name) for name in NOTHING},
        "list_cells": Command(lambda options, given: list_cells(options, given, table), "the one cell", (verbose,)),
        "list_hosts": Command(lambda options, given: list_hosts(conductor_of(options), given, say, table),
                              "the compute hosts in it", (cell,)),
        "verify_instance": Command(
            lambda options, given: verify_instance(conductor_of(options), given, say), "whether a server is in it", (
                argument("--uuid", required=True), argument("--quiet", action="store_true", help="say nothing"))),
        "delete_cell": Command(lambda options, given: delete_cell(given, say), "not possible: says so", (
            cell, argument("--force", action="store_true", help="accepted"))),
        "delete_host": Command(lambda options, given: delete_host(conductor_of(options), given, say),
                               "says how a host is taken out", (cell, argument("--host", required=True)))}


def list_cells(options: Options, given: argparse.Namespace, table: Table) -> int:
    """Passwords are shown with --verbose alone."""
    from nova.rpc import transport

    transport.open_transport(options)  # it declares transport_url
    urls = [options.transport_url or "", options.database.connection or ""]
    shown = urls if given.verbose else [without_passwords(url) for url in urls]
    table(("Name", "UUID", "Transport URL", "Database Connection", "Disabled"), [(NAME, CELL, *shown, False)])
    return 0


def without_passwords(url: str) -> str:
    """Where it is not plain what is a password, users and earlier hosts go with it."""
    masked = PASSWORD.sub(r"\1\2:****@", url)
    if masked.count("@") == masked.count(":****@"):
        return masked
    return f"{url.partition('://')[0]}://****@{url.rpartition('@')[2]}"


def list_hosts(conductor: ConductorRPC, given: argparse.Namespace, say: Say, table: Table) -> int:
    """Hosts that have a nova-compute service, by name: 0; 1 when ``--cell_uuid`` names another cell."""
    if not _is_ours(given, say):
        return NO_CELL
    table(("Cell Name", "Cell UUID", "Hostname"), [(NAME, CELL, host) for host in _hosts(conductor)])
    return 0


def verify_instance(conductor: ConductorRPC, given: argparse.Namespace, say: Say) -> int:
    """0 when there is such a server, 1 when there is none; ``--quiet`` says nothing."""
    try:
        conductor.get_target(ServerQuery(uuid=given.uuid, scope=Scope()))
        code, said = 0, f"Instance {given.uuid} is in cell {NAME} ({CELL})."
    except errors.NotFound:
        code, said = NOT_MAPPED, f"Instance {given.uuid} is in no cell: there is no such server."
    if not given.quiet:
        say(said)
    return code


def delete_cell(given: argparse.Namespace, say: Say) -> int:
    """Nothing is deleted: 2, as the cell has hosts; 1 when ``--cell_uuid`` names another cell."""
    if not _is_ours(given, say):
        return UNKNOWN
    say(f"Cell {NAME} is the only one, and stays.")
    return HAS_HOSTS


def delete_host(conductor: ConductorRPC, given: argparse.Namespace, say: Say) -> int:
    """Nothing is deleted, and it says how a host leaves: 4. 1 when ``--cell_uuid`` names another cell, 2 when the host
    is unknown."""
    if not _is_ours(given, say):
        return NO_CELL
    if given.host not in _hosts(conductor):
        say(f"Host {given.host} is not in cell {NAME}.")
        return NO_HOST
    say(f"Host {given.host} leaves the cell with its service: drain it (nova-manage host drain {given.host}), then "
        "openstack compute service delete ID.")
    return HAS_SERVERS


def _hosts(conductor: ConductorRPC) -> list[str]:
    return sorted({one.host for one in conductor.list_services(ServiceQuery(binary="nova-compute"))})


def _is_ours(given: argparse.Namespace, say: Say) -> bool:
    if given.cell_uuid in (None, CELL):
        return True
    say(f"There is no cell {given.cell_uuid}: the one cell is {CELL}.")
    return False


__all__ = ["CELL", "NAME", "actions"]
