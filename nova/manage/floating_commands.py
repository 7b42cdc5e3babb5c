"""``nova-manage floating``: create, delete and list floating addresses through the conductor."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence

from nova.manage.command import Command, ConductorOf, Run, Table, argument
from nova.model.network.floating import FloatingQuery, FloatingRange
from nova.rpc.contracts.conductor import ConductorRPC

Say = Callable[[str], None]


def actions(conductor_of: ConductorOf, say: Say, table: Table) -> dict[str, Command]:
    """Return the rows of nova-manage's command table."""
    ip_range = argument("--ip_range", required=True, metavar="CIDR",
                        help="one address, or a range, of which the usable addresses are taken")

    def run(action: Callable[..., int]) -> Run:
        return lambda options, given: action(conductor_of(options), given, say, table)
    return {
        "create": Command(run(create), "create floating addresses", (
            ip_range, argument("--pool", help="their pool (default: [DEFAULT]default_floating_pool)"),
            argument("--interface", help="network hosts' interface that carries the addresses (default: "
                                         "public_interface)"))),
        "delete": Command(run(delete), "delete floating addresses that no project uses", (ip_range,)),
        "list": Command(run(listed), "list floating addresses with their projects and servers", (
            argument("--host", help="only the addresses of this network host"),))}


def create(conductor: ConductorRPC, given: argparse.Namespace, say: Say, table: Table) -> int:
    """Create one address, or the usable addresses of a range."""
    made = conductor.create_floating_addresses(FloatingRange(ip_range=given.ip_range, pool=given.pool,
                                                             interface=given.interface))
    say(f"{_counted(made)} created.")
    return 0


def delete(conductor: ConductorRPC, given: argparse.Namespace, say: Say, table: Table) -> int:
    """Delete the addresses of the range that no project uses. Return 3 if none were deleted."""
    gone = conductor.delete_floating_addresses(FloatingRange(ip_range=given.ip_range))
    say(f"{_counted(gone)} deleted." if gone else f"Nothing to delete: {given.ip_range} has no free floating address; "
                                                   "addresses of projects are kept.")
    return 0 if gone else 3


def listed(conductor: ConductorRPC, given: argparse.Namespace, say: Say, table: Table) -> int:
    """List the floating addresses of all projects; with ``--host`` only the addresses on this host."""
    found = conductor.list_floating_addresses(FloatingQuery(host=given.host, all_rows=True))
    if not found:
        say("No floating addresses have been defined." if given.host is None else f"{given.host} carries none.")
        return 0
    table(("project", "address", "server", "pool", "interface"),
          [(one.project_id, one.address, one.server_uuid, one.pool, one.interface) for one in found])
    return 0


def _counted(addresses: Sequence[str]) -> str:
    if len(addresses) == 1:
        return f"Floating address {addresses[0]} is"
    return f"{len(addresses)} floating addresses ({addresses[0]} to {addresses[-1]}) are"


__all__ = ["actions", "create", "delete", "listed"]
