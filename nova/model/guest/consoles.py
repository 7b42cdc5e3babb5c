"""Consoles of guests: their types, what is asked for, where they are, and what a token stands for.

A token is a text of random letters that only its user and the console's proxy see: everybody else knows its SHA-256.
"""

from __future__ import annotations

import hashlib

from nova.model.base import Value, WireEnum


class ConsoleType(WireEnum):
    """The API's names."""

    NOVNC = "novnc"
    XVPVNC = "xvpvnc"
    SPICE_HTML5 = "spice-html5"
    SPICE_DIRECT = "spice-direct"
    SERIAL = "serial"
    WEBMKS = "webmks"
    RDP_HTML5 = "rdp-html5"
    UNKNOWN = "unknown"


T = ConsoleType

#: Which protocol a type of console speaks. RDP is a word of the API that no driver of ours has.
PROTOCOLS: dict[ConsoleType, str] = {
    T.NOVNC: "vnc", T.XVPVNC: "vnc", T.SPICE_HTML5: "spice", T.SPICE_DIRECT: "spice", T.SERIAL: "serial",
    T.WEBMKS: "mks", T.RDP_HTML5: "rdp",
}


def token_hash(token: str) -> str:
    """What is kept of a token, and sent to others in its place: its SHA-256 in hex."""
    return hashlib.sha256(token.encode("utf-8", "surrogateescape")).hexdigest()


class ConsoleRequest(Value):
    """A user wants to see a server's console. That they may has been checked."""

    server_uuid: str
    type: ConsoleType


class Console(Value):
    """What the user gets. ``url`` holds the token: it is for nobody else, and for no log."""

    type: ConsoleType
    url: str


class ConsoleAddress(Value):
    """Where a host's hypervisor serves a guest's console, as a proxy reaches it.

    Either ``host`` with ``port`` (and for SPICE a ``tls_port``), or ``socket_path``, a unix socket on the host.
    ``internal_access_path``: what a proxy asks of ``host`` by CONNECT before it is at the console, or (webmks) JSON for
    the proxy. ``access_url_base``: where users' programs find the proxy, which is nova-consoleauth's to say: it fills
    it in, hosts leave it empty, and what an older one writes there is not read.
    """

    access_url_base: str
    host: str | None = None
    port: int | None = None
    tls_port: int | None = None
    socket_path: str | None = None
    internal_access_path: str | None = None


class ConsoleGrant(Value):
    """Keep a token's hash for this console, for ``ttl_s`` seconds."""

    wish: ConsoleRequest
    token_hash: str
    ttl_s: int


class TokenCheck(Value):
    """A proxy has been shown a token. ``types``: what it serves (empty: whatever it is). ``redeem``: it is about to
    connect, which, where tokens serve once, uses the token up; else it only wants to know."""

    token_hash: str
    types: tuple[ConsoleType, ...] = ()
    redeem: bool = False


class ConsoleConnection(Value):
    """What a good token opens. ``expires_at``: seconds since 1970. ``host``: the compute host that says so; addresses
    like 127.0.0.1 mean its own machine."""

    type: ConsoleType
    server_uuid: str
    user_id: str
    project_id: str
    address: ConsoleAddress
    expires_at: int
    host: str = ""
