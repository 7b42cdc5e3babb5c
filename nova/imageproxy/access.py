"""Authorization of image transfers: a conductor's ticket, and a proof by the host that it was issued to."""

from __future__ import annotations

import hmac
import time
from collections.abc import Callable
from typing import NamedTuple
from wsgiref.types import WSGIEnvironment

from nova import errors, failures
from nova.model.image.image_tickets import (
    CLOCK_S,
    PROOF_HEADER,
    READ,
    TICKET_HEADER,
    TIME_HEADER,
    WRITE,
    ProvenRequest,
    TicketFacts,
    data_path,
    locations_path,
    proof,
    record_path,
)
from nova.rpc.ticket_encryption import TicketCipher
from nova.web.replay_cache import ReplayCache

IMAGES, RECORD, FILE, LOCATIONS = "/v1/images/", "", "/file", "/locations"


class ImageRequest(NamedTuple):
    """A parsed request. ``part``: the image's record, data or locations; ``range``, ``length``: the headers' values."""

    method: str
    image_id: str
    part: str
    range: str = ""
    length: str = ""
    ticket: str = ""
    time: str = ""
    proof: str = ""

    @property
    def direction(self) -> str:
        """Direction that the ticket must have; empty for a record, which any ticket may read."""
        return "" if self.part == RECORD else self.method


#: Methods for each part of an image, and the path in the proof of a request.
METHODS = {RECORD: (READ,), FILE: (READ, WRITE), LOCATIONS: (READ, WRITE)}
TARGETS = {RECORD: record_path, FILE: data_path, LOCATIONS: locations_path}


def read(environ: WSGIEnvironment) -> ImageRequest:
    """Parse a request. Raises NotFound for an unknown path, and api.MethodNotAllowed."""
    with failures.replaced(UnicodeError, lambda _: errors.NotFound()):
        path = environ["PATH_INFO"].encode("latin-1").decode()
    if not path.startswith(IMAGES):
        raise errors.NotFound()
    part = next((end for end in (FILE, LOCATIONS) if path.endswith(end)), RECORD)
    image_id = path.removeprefix(IMAGES).removesuffix(part)
    method = environ["REQUEST_METHOD"]
    if method not in METHODS[part]:
        raise errors.image.ProxyMethod(method=method)
    return ImageRequest(method, image_id, part, environ.get("HTTP_RANGE", ""), environ.get("CONTENT_LENGTH", ""),
                        _header(environ, TICKET_HEADER), _header(environ, TIME_HEADER), _header(environ, PROOF_HEADER))


def _header(environ: WSGIEnvironment, name: str) -> str:
    return str(environ.get("HTTP_" + name.upper().replace("-", "_"), ""))


class ImageAccess:
    """Authorization of requests. ``clock``: seconds of Unix time. ``seen``: shared by all workers of this proxy."""

    def __init__(self, encrypt: TicketCipher, seen: ReplayCache, clock: Callable[[], float] = time.time) -> None:
        self._seal, self._seen, self._clock = encrypt, seen, clock

    def admit(self, request: ImageRequest) -> TicketFacts:
        """Return the contents of the request's ticket. The host is authenticated before any error about its ticket.

        Raises image.TicketInvalid, image.TicketNotProven (401); image.TicketRepeated, image.TicketWrongUse (403);
        image.TicketExpired (410).
        """
        ticket = self._seal.open(request.ticket)
        self._check_proof(request, ticket)
        if request.image_id != ticket.image_id:
            raise errors.image.TicketWrongUse(reason=f"it is for image {ticket.image_id}")
        if request.direction not in ("", ticket.direction):
            raise errors.image.TicketWrongUse(reason=f"it is for {ticket.direction}, and not for {request.method}")
        if ticket.until < self._clock():
            raise errors.image.TicketExpired(image_id=ticket.image_id)
        return ticket

    def _check_proof(self, request: ImageRequest, ticket: TicketFacts) -> None:
        target = TARGETS[request.part](request.image_id)
        length = request.length if request.method == WRITE else ""
        wanted = proof(ticket.host_key, ProvenRequest(request.method, target, request.range, length, request.time))
        if not hmac.compare_digest(wanted.encode(), request.proof.encode()):
            raise errors.image.TicketNotProven(reason="its proof does not match that host or this request")
        made_at, once, _ = request.time.partition("-")
        seconds = int(made_at[:20]) if made_at.isdecimal() else 0
        if abs(seconds - self._clock()) > CLOCK_S:
            raise errors.image.TicketNotProven(reason=f"its time is off by more than {CLOCK_S} s by the clock here")
        # two requests of an older host within a second may be identical
        if once and not self._seen.add(wanted, seconds + CLOCK_S + 1):
            raise errors.image.TicketRepeated(host=ticket.host, image_id=ticket.image_id)
