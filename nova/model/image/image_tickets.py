"""Image tickets: temporary permissions for one host to read or write one image at the image proxy.

A conductor creates a ticket and adds it to an order. The ticket is encrypted (``nova.rpc.ticket_encryption``), so that
only the proxy can read it. With each request the host proves that the ticket is its own, by a key derived from its
secret and the ticket's id, which the encrypted part contains too. An intercepted ticket alone therefore permits no
access.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections.abc import Iterable, Mapping
from typing import NamedTuple
from urllib.parse import quote

from nova import errors
from nova.model.base import HostName, Value

READ, WRITE = "GET", "PUT"

#: Headers of a request to the proxy: the ticket, its time (see :func:`stamp`), and the proof of the sender.
TICKET_HEADER, TIME_HEADER, PROOF_HEADER = "X-Nova-Image-Ticket", "X-Nova-Image-Time", "X-Nova-Image-Proof"
CLOCK_S = 60  # tolerated error of a host's clock


class ImageTicket(Value):
    """A ticket as a host receives it. ``direction``: GET or PUT; ``until``: Unix seconds; ``servers``: addresses of the
    proxies, such as http://controller:9293; ``sealed``: opaque; ``key_id``: identifies the host secret for the
    proof."""

    id: str
    image_id: str
    direction: str
    until: int
    sealed: str
    key_id: str = ""
    servers: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return f"<ImageTicket {self.id} {self.direction} image={self.image_id}>"


class TicketFacts(Value):
    """The encrypted part of a ticket. ``host_key``: the key of the requests' proofs; ``server``: the server of the
    order, or empty."""

    id: str
    image_id: str
    direction: str
    host: HostName
    until: int
    host_key: str
    server: str = ""

    def __repr__(self) -> str:
        return f"<TicketFacts {self.id} {self.direction} image={self.image_id} host={self.host}>"


class ProvenRequest(NamedTuple):
    """The parts of a request that the proof covers. ``target``: its path; ``range``: its Range header, or empty;
    ``length``: of its body; ``time``: the value of its time header."""

    method: str
    target: str
    range: str
    length: str
    time: str


class ProxyRefusal(Value):
    """The proxy's error response: a nova error, in its wire form."""

    kind: str
    code: str
    message: str


def stamp(now: float) -> str:
    """Return the time of a request: Unix seconds, and a random text that makes it unique. Requests of older hosts lack
    the random text."""
    return f"{int(now)}-{secrets.token_hex(16)}"


def host_key(secret: str, ticket_id: str) -> str:
    """Return the key of a ticket's proofs, derived from the secret of the ticket's host."""
    return hmac.new(secret.encode(), f"image-ticket\0{ticket_id}".encode(), hashlib.sha256).hexdigest()


def key_id(key: str) -> str:
    """Return an identifier of a ticket's key, which reveals nothing about the key."""
    return hmac.new(key.encode(), b"image-ticket-key", hashlib.sha256).hexdigest()[:16]


def key_of(ticket: ImageTicket, secrets: Iterable[str]) -> str:
    """Return the key of a ticket's proofs. A host has several secrets during a change; the matching one is used. Raises
    image.TicketNotProven if none matches."""
    for key in (host_key(secret, ticket.id) for secret in secrets):
        if key_id(key) == ticket.key_id:
            return key
    raise errors.image.TicketNotProven(reason="the conductor has a different secret for this host")


def proof(key: str, request: ProvenRequest) -> str:
    """Return the HMAC-SHA256 of the request's parts, in hex."""
    return hmac.new(key.encode(), "\0".join(request).encode(), hashlib.sha256).hexdigest()


def proven_headers(ticket: ImageTicket, key: str, request: ProvenRequest) -> Mapping[str, str]:
    """Return the headers for a request that is signed with ``key``."""
    return {TICKET_HEADER: ticket.sealed, TIME_HEADER: request.time, PROOF_HEADER: proof(key, request)}


def record_path(image_id: str) -> str:
    """Return the proxy's path of an image's record. The id is quoted, so that it is always one part of the path."""
    return f"/v1/images/{quote(image_id, safe='')}"


def data_path(image_id: str) -> str:
    """Return the proxy's path of an image's data."""
    return f"{record_path(image_id)}/file"


def locations_path(image_id: str) -> str:
    """Return the proxy's path of the Ceph locations of an image's data."""
    return f"{record_path(image_id)}/locations"
