"""``nova-manage vpn``: list, create and configure projects' VPN servers (cloudpipe)."""

from __future__ import annotations

import argparse
from collections.abc import Callable

from nova.manage.command import Command, ConductorOf, Run, Table, argument
from nova.rpc.contracts.conductor import ConductorRPC

Say = Callable[[str], None]


def actions(conductor_of: ConductorOf, say: Say, table: Table) -> dict[str, Command]:
    """Return the rows of nova-manage's command table."""
    project = argument("--project", required=True, help="the project's id")

    def run(action: Callable[..., int]) -> Run:
        return lambda options, given: action(conductor_of(options), given, say, table)
    return {
        "list": Command(run(listed), "list projects' VPN servers", ()),
        "run": Command(run(start), "create a project's VPN server, if it has none", (project,)),
        "change": Command(run(change), "set the public address and port of a project's VPN", (
            project, argument("--ip", required=True, help="public address of the VPN of the project's networks"),
            argument("--port", required=True, type=int, help="public port of the VPN")))}


def listed(conductor: ConductorRPC, given: argparse.Namespace, say: Say, table: Table) -> int:
    """Print a row for each project that has a VPN server."""
    found = conductor.list_cloudpipes()
    if not found:
        say("There are no VPN servers.")
        return 0
    table(("project", "server", "state", "internal address", "public address", "port"),
          [(one.project_id, one.server_uuid, one.state, one.internal_address, one.public_address, one.public_port)
           for one in found])
    return 0


def start(conductor: ConductorRPC, given: argparse.Namespace, say: Say, table: Table) -> int:
    """Print the project's VPN server, which is created if it does not exist. Raises Invalid if the cloud or the
    project's network does not support it, Unavailable if nova-cert does not answer."""
    say(f"The VPN server of project {given.project} is {conductor.create_cloudpipe(given.project)}.")
    return 0


def change(conductor: ConductorRPC, given: argparse.Namespace, say: Say, table: Table) -> int:
    """Set the public address and port of a project's VPN. Raises NotFound if the project has no network, Invalid if
    the address or port is invalid."""
    conductor.configure_vpn(given.project, given.ip, given.port)
    say(f"Clients of project {given.project}'s VPN connect to {given.ip}, port {given.port}.")
    return 0


__all__ = ["actions", "change", "listed", "start"]
