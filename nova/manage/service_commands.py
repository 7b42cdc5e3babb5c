"""``nova-manage service``: every daemon that registers, APIs and console proxies too."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from typing import Any

from nova import errors
from nova.manage.command import JSON, Command, ConductorOf, argument
from nova.manage.output import write_json
from nova.model.host.services import Service, ServiceQuery
from nova.rpc.contracts.conductor import ConductorRPC

Say = Callable[[str], None]
Table = Callable[[Sequence[str], Sequence[Sequence[Any]]], None]

NOTHING = 3


def listed(conductor: ConductorRPC, given: argparse.Namespace, table: Table) -> int:
    """One row a host and binary, however many workers; with ``--host`` and ``--service`` those alone."""
    found = conductor.list_services(ServiceQuery(host=given.host, binary=given.service, hidden=True))
    if given.json:
        return write_json(found)
    table(("Binary", "Host", "Zone", "Status", "State", "Release", "Updated_At", "Contracts"),
          [(one.binary, one.host, one.zone, "disabled" if one.disabled else "enabled", ":-)" if one.up else "XXX",
            one.version, one.last_seen_at, _contracts(one)) for one in found])
    return 0


def _contracts(service: Service) -> str:
    return ", ".join(f"{one.name} {one.version}" for one in service.contracts)


def delete(conductor: ConductorRPC, given: argparse.Namespace, say: Say) -> int:
    """The row of a daemon that is gone for good: 0. 3: there is none. daemon.StillUp; of a nova-compute Conflict, as
    long as servers or cleanups are on its host."""
    found = conductor.list_services(ServiceQuery(host=given.host, binary=given.binary, hidden=True))
    if not found:
        say(f"No {given.binary} is registered for {given.host}: see nova-manage service list.")
        return NOTHING
    if found[0].up:
        raise errors.daemon.StillUp(binary=given.binary, host=given.host)
    conductor.delete_service(ServiceQuery(uuid=found[0].uuid))
    say(f"{given.binary} on {given.host} is forgotten. It registers anew if it starts again.")
    return 0


def actions(conductor_of: ConductorOf, say: Say, table: Table) -> dict[str, Command]:
    """The rows of nova-manage's table of commands."""
    return {
        "list": Command(lambda options, given: listed(conductor_of(options), given, table),
                        "every daemon: whether it is up, its release, and the contracts it serves", (
            argument("--host"), argument("--service", metavar="BINARY"), JSON)),
        "delete": Command(lambda options, given: delete(conductor_of(options), given, say),
                          "remove the row of a daemon that was removed", (
            argument("host"), argument("binary", help="as service list shows it: nova-novncproxy")))}
