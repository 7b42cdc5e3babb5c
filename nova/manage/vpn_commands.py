"""``nova-manage vpn``: projects' VPN servers (cloudpipe), listed, made, and where their clients come in."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from typing import Any

from nova.manage.command import Command, ConductorOf, Run, argument
from nova.rpc.contracts.conductor import ConductorRPC

Say = Callable[[str], None]
Table = Callable[[Sequence[str], Sequence[Sequence[Any]]], None]


def actions(conductor_of: ConductorOf, say: Say, table: Table) -> dict[str, Command]:
    """The rows of nova-manage's table, made of its own pieces."""
    project = argument("--project", required=True, help="the project's id")

    def run(action: Callable[..., int]) -> Run:
        return lambda options, given: action(conductor_of(options), given, say, table)
    return {
        "list": Command(run(listed), "projects' VPN servers", ()),
        "run": Command(run(start), "make a project's VPN server, where it has none", (project,)),
        "change": Command(run(change), "say where the clients of a project's VPN come in", (
            project, argument("--ip", required=True, help="public address of its networks' VPN"),
            argument("--port", required=True, type=int, help="its port")))}


def listed(conductor: ConductorRPC, given: argparse.Namespace, say: Say, table: Table) -> int:
    """A row for each project that has a VPN server."""
    found = conductor.list_cloudpipes()
    if not found:
        say("There are no VPN servers.")
        return 0
    table(("project", "server", "state", "internal address", "public address", "port"),
          [(one.project_id, one.server_uuid, one.state, one.internal_address, one.public_address, one.public_port)
           for one in found])
    return 0


def start(conductor: ConductorRPC, given: argparse.Namespace, say: Say, table: Table) -> int:
    """The project's VPN server: what it has already, or a new server. Invalid: the cloud, or the project's network, is
    not made for it; Unavailable: nova-cert."""
    say(f"The VPN server of project {given.project} is {conductor.create_cloudpipe(given.project)}.")
    return 0


def change(conductor: ConductorRPC, given: argparse.Namespace, say: Say, table: Table) -> int:
    """Where the clients of a project's VPN come in. NotFound: the project has no network; Invalid: address or port."""
    conductor.configure_vpn(given.project, given.ip, given.port)
    say(f"Clients of project {given.project}'s VPN come in at {given.ip}, port {given.port}.")
    return 0


__all__ = ["actions", "change", "listed", "start"]
