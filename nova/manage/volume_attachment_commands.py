"""``nova-manage volume_attachment``: a server's use of a volume, as its record has it; and a new one in its place.

How a host reaches a volume is asked of Cinder whenever it is needed, so that a server that is started learns of moved
Ceph monitors by itself. A refresh is for what Cinder ties to the attachment itself, such as a host's changed initiator.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec

from nova import errors
from nova.conf.base import Options
from nova.manage.command import JSON, Command, ConductorOf, argument
from nova.manage.output import write_json
from nova.model.base import Scope
from nova.model.server.servers import ServerQuery
from nova.model.volumes import Connector
from nova.rpc.contracts.conductor import ConductorRPC

Say = Callable[[str], None]
Table = Callable[[Sequence[str], Sequence[Sequence[Any]]], None]

NO_SERVER, NOT_ATTACHED, NOT_OFF, BAD_CONNECTOR = 2, 3, 4, 5
#: Exit statuses of what the conductor refuses, by the error's code.
REFUSED = {errors.server.NotFound.code: NO_SERVER, errors.volume.NotAttached.code: NOT_ATTACHED,
           errors.volume.RefreshNotOff.code: NOT_OFF, errors.volume.Busy.code: NOT_OFF}


def show(conductor: ConductorRPC, given: argparse.Namespace, say: Say, table: Table) -> int:
    """0; 3: the server has no such volume."""
    found = next((one for one in conductor.list_server_volumes(ServerQuery(uuid=given.server, scope=Scope()))
                  if one.volume_id == given.volume), None)
    if found is None:
        say(f"Server {given.server} has no volume {given.volume}.")
        return NOT_ATTACHED
    if given.json:
        return write_json(found)
    table(("Field", "Value"), sorted(msgspec.structs.asdict(found).items()))
    return 0


def refresh(conductor: ConductorRPC, given: argparse.Namespace, say: Say, table: Table) -> int:
    """0; 5: the file with the connector cannot be read."""
    connector: Connector | None = None
    if given.connector_path:
        try:
            connector = json.loads(Path(given.connector_path).read_text())
        except (OSError, ValueError) as error:
            say(f"{given.connector_path} cannot be read as JSON: {error}")
            return BAD_CONNECTOR
        if not isinstance(connector, dict):
            say(f"{given.connector_path} holds no connector, which is a JSON object: see get_connector.")
            return BAD_CONNECTOR
    made = conductor.refresh_attachment(given.server, given.volume, connector)
    say(f"Volume {given.volume} of server {given.server} has attachment {made.attachment_id} now.")
    return 0


def get_connector(conductor: ConductorRPC, given: argparse.Namespace, say: Say, table: Table) -> int:
    """What a host (this one, unless another is named) says of itself to a volume's back end, as JSON."""
    return write_json(conductor.host_connector(given.host))


def actions(conductor_of: ConductorOf, say: Say, table: Table) -> dict[str, Command]:
    """The rows of nova-manage's table of commands."""
    def runs(work: Callable[..., int]) -> Callable[[Options, argparse.Namespace], int]:
        def run(options: Options, given: argparse.Namespace) -> int:
            try:
                given.host = getattr(given, "host", None) or options.host
                return work(conductor_of(options), given, say, table)
            except errors.NovaError as error:
                if error.code not in REFUSED:
                    raise
                say(error.message)
                return REFUSED[error.code]
        return run

    server, volume = argument("server", metavar="UUID"), argument("volume", metavar="VOLUME_ID")
    accepted: dict[str, Any] = {"action": "store_true", "help": "accepted; how a volume is reached is kept nowhere"}
    return {
        "show": Command(runs(show), "a server's use of a volume, as its record has it", (
            server, volume, JSON, argument("--connection_info", **accepted))),
        "refresh": Command(runs(refresh), "have Cinder make a new attachment for a server that is off", (
            server, volume, argument("connector_path", nargs="?", metavar="FILE",
                                     help="JSON of get_connector; without it, the server's host is asked"))),
        "get_connector": Command(runs(get_connector), "what a compute host says of itself to volumes' back ends", (
            argument("host", nargs="?", metavar="HOST", help="this one, when left out"), JSON))}
