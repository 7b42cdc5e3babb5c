"""``nova-manage volume_attachment``: show a server's recorded volume attachment, or replace it with a new one.

Nova asks Cinder for the connection data of a volume whenever it is needed, so a started server learns of moved Ceph
monitors automatically. A refresh is for data that Cinder ties to the attachment, such as a host's changed initiator.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from nova import errors
from nova.conf._options import Options
from nova.manage.command import JSON, Command, ConductorOf, Table, argument
from nova.manage.output import write_json
from nova.model.base import Scope
from nova.model.server.servers import ServerQuery
from nova.model.volumes import Connector
from nova.rpc.contracts.conductor import ConductorRPC

Say = Callable[[str], None]

NO_SERVER, NOT_ATTACHED, NOT_OFF, BAD_CONNECTOR = 2, 3, 4, 5
#: Code of the conductor's error -> exit status.
REFUSED = {errors.server.NotFound.code: NO_SERVER, errors.volume.NotAttached.code: NOT_ATTACHED,
           errors.volume.RefreshNotOff.code: NOT_OFF, errors.volume.Busy.code: NOT_OFF}


def show(conductor: ConductorRPC, given: argparse.Namespace, say: Say, table: Table) -> int:
    """Print the attachment. Return 0; 3 if the server does not have the volume."""
    found = next((one for one in conductor.list_server_volumes(ServerQuery(uuid=given.server, scope=Scope()))
                  if one.volume_id == given.volume), None)
    if found is None:
        say(f"Server {given.server} does not have volume {given.volume}.")
        return NOT_ATTACHED
    if given.json:
        return write_json(found)
    table(("Field", "Value"), sorted(msgspec.structs.asdict(found).items()))
    return 0


def refresh(conductor: ConductorRPC, given: argparse.Namespace, say: Say, table: Table) -> int:
    """Replace the attachment with a new one. Return 0; 5 if the file with the connector cannot be read."""
    connector: Connector | None = None
    if given.connector_path:
        try:
            connector = json.loads(Path(given.connector_path).read_text())
        except (OSError, ValueError) as error:
            say(f"{given.connector_path} cannot be read as JSON: {error}")
            return BAD_CONNECTOR
        if not isinstance(connector, dict):
            say(f"{given.connector_path} does not contain a connector, which is a JSON object: see get_connector.")
            return BAD_CONNECTOR
    made = conductor.refresh_attachment(given.server, given.volume, connector)
    say(f"Volume {given.volume} of server {given.server} now has attachment {made.attachment_id}.")
    return 0


def get_connector(conductor: ConductorRPC, given: argparse.Namespace, say: Say, table: Table) -> int:
    """Print the connector of a host (default: this one), which it sends to volume back ends, as JSON."""
    return write_json(conductor.host_connector(given.host))


def actions(conductor_of: ConductorOf, say: Say, table: Table) -> dict[str, Command]:
    """Return the rows of nova-manage's command table."""
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
    accepted: dict[str, Any] = {"action": "store_true", "help": "accepted; connection data are not stored"}
    return {
        "show": Command(runs(show), "show a server's recorded volume attachment", (
            server, volume, JSON, argument("--connection_info", **accepted))),
        "refresh": Command(runs(refresh), "replace the Cinder attachment of a stopped server", (
            server, volume, argument("connector_path", nargs="?", metavar="FILE",
                                     help="JSON of get_connector (default: ask the server's host)"))),
        "get_connector": Command(runs(get_connector), "print the connector that a host sends to volume back ends", (
            argument("host", nargs="?", metavar="HOST", help="the compute host (default: this one)"), JSON))}
