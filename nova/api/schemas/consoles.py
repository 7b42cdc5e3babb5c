"""Bodies of requests for consoles."""

from __future__ import annotations

from nova.web.schema import Body, Query, row


def _old(action: str, types: tuple[str, ...]) -> Body:
    return Body(row(action, "object", required=True),
                row(f"{action}.type", "string", allowed=types, required=True))


VNC = _old("os-getVNCConsole", ("novnc", "xvpvnc"))
SPICE = _old("os-getSPICEConsole", ("spice-html5",))
SERIAL = _old("os-getSerialConsole", ("serial",))
RDP = Body(row("(body)"))

_PROTOCOLS = ("vnc", "spice", "serial", "rdp")
_TYPES = ("novnc", "rdp-html5", "serial", "spice-html5", "xvpvnc")
_BY_VERSION = ((None, "2.7", _PROTOCOLS, _TYPES), ("2.8", "2.98", (*_PROTOCOLS, "mks"), (*_TYPES, "webmks")),
               ("2.99", None, (*_PROTOCOLS, "mks"), (*_TYPES, "webmks", "spice-direct")))
REMOTE = Body(
    row("remote_console", "object", required=True),
    *(row("remote_console.protocol", "string", allowed=protocols, required=True, since=since, until=until)
      for since, until, protocols, _types in _BY_VERSION),
    *(row("remote_console.type", "string", allowed=types, required=True, since=since, until=until)
      for since, until, _protocols, types in _BY_VERSION))

TOKEN_QUERY = Query(refuse_unknown="2.99")
