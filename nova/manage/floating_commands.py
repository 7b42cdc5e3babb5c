"""``nova-manage floating``: pools of floating addresses, made, removed and listed through the conductor."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from typing import Any

from nova.manage.command import Command, ConductorOf, Run, argument
from nova.model.network.floating import FloatingQuery, FloatingRange
from nova.rpc.contracts.conductor import ConductorRPC

Say = Callable[[str], None]
Table = Callable[[Sequence[str], Sequence[Sequence[Any]]], None]


def actions(conductor_of: ConductorOf, say: Say, table: Table) -> dict[str, Command]:
    """The rows of nova-manage's table, made of its own pieces."""
    ip_range = argument("--ip_range", required=True, metavar="CIDR",
                        help="one address, or a range whose usable addresses count")

    def run(action: Callable[..., int]) -> Run:
        return lambda options, given: action(conductor_of(options), given, say, table)
    return {
        "create": Command(run(create), "make floating addresses", (
            ip_range, argument("--pool", help="their pool; [DEFAULT]default_floating_pool when left out"),
            argument("--interface", help="network hosts' interface that they stand on; public_interface when left "
                                         "out"))),
        "delete": Command(run(delete), "remove floating addresses that no project has", (ip_range,)),
        "list": Command(run(listed), "floating addresses, and who has them", (
            argument("--host", help="only the addresses of this network host"),))}


def create(conductor: ConductorRPC, given: argparse.Namespace, say: Say, table: Table) -> int:
    """One address, or the usable ones of a range."""
    made = conductor.create_floating_addresses(FloatingRange(ip_range=given.ip_range, pool=given.pool,
                                                             interface=given.interface))
    say(f"{_counted(made)} made.")
    return 0


def delete(conductor: ConductorRPC, given: argparse.Namespace, say: Say, table: Table) -> int:
    """Those of the range that no project has; 3 when there are none."""
    gone = conductor.delete_floating_addresses(FloatingRange(ip_range=given.ip_range))
    say(f"{_counted(gone)} removed." if gone else f"No project's floating address of {given.ip_range} is removed, and "
                                                   "there is no free one.")
    return 0 if gone else 3


def listed(conductor: ConductorRPC, given: argparse.Namespace, say: Say, table: Table) -> int:
    """All floating addresses, of every project; with ``--host`` those that this host carries."""
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
