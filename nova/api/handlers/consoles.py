"""Consoles of servers: addresses for users, and connection data of tokens for administrators."""

from __future__ import annotations

from typing import NoReturn

from nova import errors
from nova.api import versions
from nova.api.handlers.server_targets import target
from nova.api.request import Request
from nova.api.view import answers
from nova.api.views import consoles as views
from nova.model.guest.consoles import PROTOCOLS, Console, ConsoleRequest, ConsoleType, token_hash


def _opened(req: Request, server_id: str, type: ConsoleType) -> Console:
    console: Console = req.consoles.open_console(ConsoleRequest(server_uuid=server_id, type=type))
    return console


def _old(req: Request, server_id: str, action: str) -> dict[str, object]:
    target(req, server_id)
    return {"console": views.OLD(_opened(req, server_id, ConsoleType(req.body[action]["type"])), req)}


@answers({"console": views.OLD})
def vnc(req: Request, server_id: str) -> dict[str, object]:
    """Return the address of a VNC console, with a token that is shown only here. Raises server.NotFound (404);
    console.Moving, console.NotReady, server.NoHost, server.WrongState (409); console.TypeUnavailable (400);
    console.HostAway (503)."""
    return _old(req, server_id, "os-getVNCConsole")


@answers({"console": views.OLD})
def spice(req: Request, server_id: str) -> dict[str, object]:
    """Return the address of a SPICE console. Errors as for the VNC console."""
    return _old(req, server_id, "os-getSPICEConsole")


@answers({"console": views.OLD})
def serial(req: Request, server_id: str) -> dict[str, object]:
    """Return the address of a serial console, a WebSocket. Errors as for the VNC console."""
    return _old(req, server_id, "os-getSerialConsole")


@answers({"console": views.OLD})
def rdp(req: Request, server_id: str) -> NoReturn:
    """Refuse RDP consoles, which no hypervisor supports any more: always console.TypeUnavailable (400)."""
    raise errors.console.TypeUnavailable(type=ConsoleType.RDP_HTML5.value)


@answers({"remote_console": views.REMOTE})
def create(req: Request, server_id: str) -> dict[str, object]:
    """Return the address of a console of any type, with a token that is shown only here. Raises api.ConsoleNoFit for a
    protocol that the type does not have, console.TypeUnavailable (400); server.NotFound (404); console.Moving,
    console.NotReady, server.NoHost, server.WrongState (409); console.HostAway (503)."""
    target(req, server_id)
    asked = req.body["remote_console"]
    type = ConsoleType(asked["type"])
    if PROTOCOLS[type] != asked["protocol"]:
        fitting = " or ".join(one.value for one, protocol in PROTOCOLS.items() if protocol == asked["protocol"])
        raise errors.api.ConsoleNoFit(type=type.value, protocol=asked["protocol"], types=fitting)
    if type is ConsoleType.RDP_HTML5:
        raise errors.console.TypeUnavailable(type=type.value)
    return {"remote_console": views.REMOTE(_opened(req, server_id, type), req)}


@answers({"console": views.CONNECTION})
def show_token(req: Request, console_token: str) -> dict[str, object]:
    """Show the target of a console token: host, port and server. Before 2.31 it is api.ConsoleTokensRdpOnly (400).
    Raises console.Unknown, Expired, Ended, Off (404); console.CannotTell (503)."""
    if not versions.tokens_of_all_consoles_are_shown(req.version):
        raise errors.api.ConsoleTokensRdpOnly
    return {"console": views.CONNECTION(req.consoles.show_token(token_hash(console_token)), req)}
