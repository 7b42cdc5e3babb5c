"""``nova-manage service``: all services that register, including APIs and console proxies."""

from __future__ import annotations

import argparse
from collections.abc import Callable

from nova import errors
from nova.manage.command import JSON, Command, ConductorOf, Table, argument
from nova.manage.output import write_json
from nova.model.host.services import Service, ServiceQuery
from nova.rpc.contracts.conductor import ConductorRPC

Say = Callable[[str], None]

NOTHING = 3


def listed(conductor: ConductorRPC, given: argparse.Namespace, table: Table) -> int:
    """Print one row for each host and binary, regardless of its workers; ``--host`` and ``--service`` filter them."""
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
    """Delete the row of a removed service. Return 0; 3 if it has no row.

    Raises daemon.StillUp; Conflict for a nova-compute while servers or cleanups are on its host."""
    found = conductor.list_services(ServiceQuery(host=given.host, binary=given.binary, hidden=True))
    if not found:
        say(f"No {given.binary} is registered for {given.host}: see nova-manage service list.")
        return NOTHING
    if found[0].up:
        raise errors.daemon.StillUp(binary=given.binary, host=given.host)
    conductor.delete_service(ServiceQuery(uuid=found[0].uuid))
    say(f"{given.binary} on {given.host} is no longer registered. It registers again if it is started.")
    return 0


def actions(conductor_of: ConductorOf, say: Say, table: Table) -> dict[str, Command]:
    """Return the rows of nova-manage's command table."""
    return {
        "list": Command(lambda options, given: listed(conductor_of(options), given, table),
                        "list services with their state, release, and the RPC contracts they serve", (
            argument("--host"), argument("--service", metavar="BINARY"), JSON)),
        "delete": Command(lambda options, given: delete(conductor_of(options), given, say),
                          "delete the row of a removed service", (
            argument("host"), argument("binary", help="as 'service list' shows it, for example nova-novncproxy")))}
