"""Image tickets: what lets one host read or write one image at the image proxy, for a while.

A conductor makes a ticket and puts it into an order. It is sealed (``nova.rpc.image_seal``): the proxy alone can read
it. The host proves with each request that the ticket is its own: by a key that follows from the host's secret and the
ticket's id, which the seal holds too. So a ticket alone, read on its way by somebody else, opens nothing.
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

#: Headers of a request to the proxy: the ticket, when it was made (see :func:`stamp`), and what proves whose it is.
TICKET_HEADER, TIME_HEADER, PROOF_HEADER = "X-Nova-Image-Ticket", "X-Nova-Image-Time", "X-Nova-Image-Proof"
CLOCK_S = 60  # that a host's clock may be wrong


class ImageTicket(Value):
    """A ticket as a host gets it. ``direction``: GET or PUT; ``until``: Unix seconds; ``servers``: addresses of the
    proxies, such as http://controller:9293; ``sealed``: opaque; ``key_id``: which of its secrets the host proves it by.
    """

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
    """What the seal holds. ``host_key``: of the requests' proofs; ``server``: whose order it came with, or empty."""

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
    """What of a request is proven. ``target``: its path; ``range``: its Range, or empty; ``length``: of its body;
    ``time``: as its header says it."""

    method: str
    target: str
    range: str
    length: str
    time: str


class ProxyRefusal(Value):
    """What the proxy answers in place of what was asked for: one of our errors, as it crosses between processes."""

    kind: str
    code: str
    message: str


def stamp(now: float) -> str:
    """When a request is made: Unix seconds, and letters that no other request has. Those of older hosts lack them."""
    return f"{int(now)}-{secrets.token_hex(16)}"


def host_key(secret: str, ticket_id: str) -> str:
    """The key of a ticket's proofs, from the secret of the host that it is for."""
    return hmac.new(secret.encode(), f"image-ticket\0{ticket_id}".encode(), hashlib.sha256).hexdigest()


def key_id(key: str) -> str:
    """What tells a ticket's key from others, and nothing of it."""
    return hmac.new(key.encode(), b"image-ticket-key", hashlib.sha256).hexdigest()[:16]


def key_of(ticket: ImageTicket, secrets: Iterable[str]) -> str:
    """The key of a ticket's proofs: of the secrets that a host has while it changes them, the right one's.
    image.TicketNotProven."""
    for key in (host_key(secret, ticket.id) for secret in secrets):
        if key_id(key) == ticket.key_id:
            return key
    raise errors.image.TicketNotProven(reason="the conductor knows another secret of this host")


def proof(key: str, request: ProvenRequest) -> str:
    """HMAC-SHA256 over the request's parts, hex."""
    return hmac.new(key.encode(), "\0".join(request).encode(), hashlib.sha256).hexdigest()


def proven_headers(ticket: ImageTicket, key: str, request: ProvenRequest) -> Mapping[str, str]:
    """The headers with which the host whose key this is makes the request."""
    return {TICKET_HEADER: ticket.sealed, TIME_HEADER: request.time, PROOF_HEADER: proof(key, request)}


def record_path(image_id: str) -> str:
    """Where the proxy has what is known of an image: whatever stands in an id is one part of the path."""
    return f"/v1/images/{quote(image_id, safe='')}"


def data_path(image_id: str) -> str:
    """Where the proxy has an image's data."""
    return f"{record_path(image_id)}/file"


def locations_path(image_id: str) -> str:
    """Where the proxy has the addresses of an image's data in Ceph."""
    return f"{record_path(image_id)}/locations"
