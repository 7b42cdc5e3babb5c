"""Who may read or write which image: a ticket of a conductor's, and the proof of the host that it is for."""

from __future__ import annotations

import hmac
import time
from collections.abc import Callable
from typing import NamedTuple
from wsgiref.types import WSGIEnvironment

from nova import errors
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
from nova.rpc.image_seal import TicketSeal
from nova.web.seen import SeenRequests

IMAGES, RECORD, FILE, LOCATIONS = "/v1/images/", "", "/file", "/locations"


class ImageRequest(NamedTuple):
    """What is asked for. ``part``: its record, data or locations; ``range``, ``length``: as the headers have them."""

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
        """What a ticket must be for; a record is for whoever may do either."""
        return "" if self.part == RECORD else self.method


#: What can be done with each part of an image, and the path that the proof of a request names.
METHODS = {RECORD: (READ,), FILE: (READ, WRITE), LOCATIONS: (READ, WRITE)}
TARGETS = {RECORD: record_path, FILE: data_path, LOCATIONS: locations_path}


def read(environ: WSGIEnvironment) -> ImageRequest:
    """What a request asks for. NotFound: no path of ours. api.MethodNotAllowed."""
    try:
        path = environ["PATH_INFO"].encode("latin-1").decode()
    except UnicodeError:
        raise errors.NotFound() from None
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


class Gate:
    """``clock``: seconds of Unix time. ``seen``: of all workers of this proxy."""

    def __init__(self, seal: TicketSeal, seen: SeenRequests, clock: Callable[[], float] = time.time) -> None:
        self._seal, self._seen, self._clock = seal, seen, clock

    def admit(self, request: ImageRequest) -> TicketFacts:
        """What the ticket of the request says. The host is known before anything is said of its ticket.

        image.TicketInvalid, image.TicketNotProven (401); image.TicketRepeated, image.TicketWrongUse (403);
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
            raise errors.image.TicketNotProven(reason="its proof is not one of that host, or not of this request")
        made_at, once, _ = request.time.partition("-")
        seconds = int(made_at[:20]) if made_at.isdecimal() else 0
        if abs(seconds - self._clock()) > CLOCK_S:
            raise errors.image.TicketNotProven(reason=f"its time is wrong by more than {CLOCK_S} s, by the clock here")
        # two requests of an older host, made within a second, may be the same
        if once and not self._seen.add(wanted, seconds + CLOCK_S + 1):
            raise errors.image.TicketRepeated(host=ticket.host, image_id=ticket.image_id)
