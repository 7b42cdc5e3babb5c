"""Consoles of guests: types, requests, addresses, and the connections that tokens grant.

A token is a text of random letters that only its user and the console proxy see. Other services only have its SHA-256.
"""

from __future__ import annotations

import hashlib

from nova.model.base import Value, WireEnum


class ConsoleType(WireEnum):
    """Console types, named as in the API."""

    NOVNC = "novnc"
    XVPVNC = "xvpvnc"
    SPICE_HTML5 = "spice-html5"
    SPICE_DIRECT = "spice-direct"
    SERIAL = "serial"
    WEBMKS = "webmks"
    RDP_HTML5 = "rdp-html5"
    UNKNOWN = "unknown"


T = ConsoleType

#: Console type -> protocol. RDP is part of the API, but no driver of nova supports it.
PROTOCOLS: dict[ConsoleType, str] = {
    T.NOVNC: "vnc", T.XVPVNC: "vnc", T.SPICE_HTML5: "spice", T.SPICE_DIRECT: "spice", T.SERIAL: "serial",
    T.WEBMKS: "mks", T.RDP_HTML5: "rdp",
}


def token_hash(token: str) -> str:
    """Return a token's SHA-256 in hex, which is stored and sent in place of the token."""
    return hashlib.sha256(token.encode("utf-8", "surrogateescape")).hexdigest()


class ConsoleRequest(Value):
    """A user's request for a server's console. The user's permission has already been checked."""

    server_uuid: str
    type: ConsoleType


class Console(Value):
    """The console as the user receives it. ``url`` contains the token: only for that user, never for a log."""

    type: ConsoleType
    url: str


class ConsoleAddress(Value):
    """The address where a host's hypervisor serves a guest's console, as a proxy reaches it.

    Either ``host`` with ``port`` (and for SPICE a ``tls_port``), or ``socket_path``, a unix socket on the host.
    ``internal_access_path``: the target that a proxy requests from ``host`` by CONNECT before the console answers, or
    (webmks) JSON for the proxy. ``access_url_base``: the proxy's address for user programs. Only nova-consoleauth sets
    it; hosts leave it empty, and a value from an older host is not read.
    """

    access_url_base: str
    host: str | None = None
    port: int | None = None
    tls_port: int | None = None
    socket_path: str | None = None
    internal_access_path: str | None = None


class ConsoleGrant(Value):
    """Order to store a token's hash for this console, for ``ttl_s`` seconds."""

    wish: ConsoleRequest
    token_hash: str
    ttl_s: int


class TokenCheck(Value):
    """A proxy's query about a token. ``types``: the types that the proxy serves (empty: any). ``redeem``: the proxy is
    about to connect, which uses a single-use token up; otherwise it only checks the token."""

    token_hash: str
    types: tuple[ConsoleType, ...] = ()
    redeem: bool = False


class ConsoleConnection(Value):
    """The console that a valid token grants. ``expires_at``: seconds since 1970. ``host``: the compute host that serves
    it; addresses like 127.0.0.1 mean that host's machine."""

    type: ConsoleType
    server_uuid: str
    user_id: str
    project_id: str
    address: ConsoleAddress
    expires_at: int
    host: str = ""
