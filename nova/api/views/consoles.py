"""Consoles, and the targets of their tokens, as the API shows them."""

from __future__ import annotations

from nova.api.view import LEFT_OUT, Out, View
from nova.model.guest.consoles import PROTOCOLS, Console, ConsoleConnection, ConsoleType

_TYPE = Out("type", lambda console, req: console.type.value, type="string")

OLD = View(_TYPE, Out("url", "url"), of=Console)
REMOTE = View(Out("protocol", lambda console, req: PROTOCOLS[console.type], type="string"), _TYPE, Out("url", "url"),
              of=Console)

#: A console on a unix socket of its host has no address, because clients could not reach it; they expect a number.
CONNECTION = View(
    Out("instance_uuid", "server_uuid"),
    Out("host", lambda found, req: found.address.host, type=("string", "null")),
    Out("port", lambda found, req: found.address.port or 0, type="integer"),
    Out("internal_access_path", lambda found, req: found.address.internal_access_path, type=("string", "null")),
    Out("tls_port", lambda found, req: found.address.tls_port if found.type is ConsoleType.SPICE_DIRECT else LEFT_OUT,
        since="2.99", optional=True, type=("integer", "null")),
    of=ConsoleConnection)
