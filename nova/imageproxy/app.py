"""The WSGI application: checks a request's ticket, then transfers the image between the host and the image service.

A refusal is one of nova's errors, as JSON (``nova.model.image.image_tickets.ProxyRefusal``).
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from http import HTTPStatus
from typing import NamedTuple
from wsgiref.types import StartResponse, WSGIEnvironment

import msgspec

from nova import context, errors, failures, tracing
from nova.clients import image_locations
from nova.imageproxy.access import LOCATIONS, RECORD, ImageAccess, ImageRequest, read
from nova.imageproxy.transfers import (
    ImageService,
    Incoming,
    MeteredBody,
    Outgoing,
    Transfer,
    TransferSlots,
    content_range,
)
from nova.model.image.image_tickets import READ, ProxyRefusal, TicketFacts
from nova.model.image.rbd_locations import rbd_location
from nova.web.request_id import RequestId

LOG = logging.getLogger(__name__)

HEALTH = "/healthcheck"
COME_AGAIN_S = "5"
LONGEST_URL = 1024
BINARY, JSON = "application/octet-stream", "application/json"


class ProxyAnswer(NamedTuple):
    status: int
    content: Iterable[bytes]
    headers: Mapping[str, str] = {}


class ImageProxyApp:
    def __init__(self, images: ImageService, access: ImageAccess, slots: TransferSlots) -> None:
        self._images, self._access, self._slots = images, access, slots

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        who = context.RequestContext(request_id=environ.get("nova.request_id") or context.new_request_id(),
                                     global_request_id=environ.get("nova.global_request_id"),
                                     traceparent=context.current().traceparent)
        with context.entered(who), tracing.span(environ["REQUEST_METHOD"], tracing.SERVER) as span:
            answer = self._safely(environ)
            span["http.response.status_code"] = answer.status
        start_response(f"{answer.status} {HTTPStatus(answer.status).phrase}", list(answer.headers.items()))
        return answer.content

    def _safely(self, environ: WSGIEnvironment) -> ProxyAnswer:
        try:
            with failures.keep_running(LOG, "unexpected failure of the image proxy", but=errors.NovaError):
                return self._answer(environ)
        except errors.NovaError as error:
            LOG.warning("refused %s from %s: %d %s", environ["REQUEST_METHOD"], environ.get("REMOTE_ADDR", "-"),
                        error.status, error.message)
            return _refusal(error)
        return _refusal(errors.Bug())

    def _answer(self, environ: WSGIEnvironment) -> ProxyAnswer:
        if environ["PATH_INFO"] == HEALTH:
            return ProxyAnswer(200, [b"OK\n"], {"Content-Type": "text/plain"})
        request = read(environ)
        ticket = self._access.admit(request)
        if request.part == RECORD:
            return self._record(request)
        if request.part == LOCATIONS:
            return self._locations(request) if request.method == READ else self._take(request, environ)
        if request.method == READ:
            return self._read(request, ticket)
        return self._write(request, ticket, environ)

    def _record(self, request: ImageRequest) -> ProxyAnswer:
        return ProxyAnswer(200, [msgspec.json.encode(self._images.show(request.image_id))], {"Content-Type": JSON})

    def _locations(self, request: ImageRequest) -> ProxyAnswer:
        """Return only the locations in Ceph: URLs of other stores may contain passwords, and a host cannot use them."""
        found = [one.url for one in map(rbd_location, self._images.locations(request.image_id)) if one is not None]
        return ProxyAnswer(200, [msgspec.json.encode(found)], {"Content-Type": JSON})

    def _take(self, request: ImageRequest, environ: WSGIEnvironment) -> ProxyAnswer:
        """Set the image's data to a location in Ceph. It must belong to this image, so that a host cannot expose
        another's data."""
        body = environ["wsgi.input"].read(min(int(request.length), LONGEST_URL)) if request.length.isdecimal() else b""
        location = rbd_location(body.decode("ascii", "replace"))
        if location is None or location.image != request.image_id:
            raise errors.image.ProxyLocation(image_id=request.image_id)
        image_locations.take(self._images, request.image_id, location.url)
        return ProxyAnswer(204, [])

    def _read(self, request: ImageRequest, ticket: TicketFacts) -> ProxyAnswer:
        """Stream the data from the image service. A service without ranges returns all data, and the host starts
        again."""
        headers = {"Content-Type": BINARY}
        part = content_range(self._images.show(request.image_id), request.range) if request.range else ""
        give_back = self._slots.take()
        with failures.on_failure(give_back, on=BaseException):
            data = self._images.open(request.image_id, request.range)
        if data.length is not None:
            headers["Content-Length"] = str(data.length)
        if data.partial and part:
            headers["Content-Range"] = part
        return ProxyAnswer(206 if data.partial else 200, Outgoing(data, Transfer(ticket, give_back)), headers)

    def _write(self, request: ImageRequest, ticket: TicketFacts, environ: WSGIEnvironment) -> ProxyAnswer:
        if not request.length.isdecimal():
            raise errors.image.ProxyNoLength()
        body = Incoming(environ["wsgi.input"], int(request.length))
        transfer = Transfer(ticket, self._slots.take())
        try:
            self._images.send(request.image_id, MeteredBody(body, transfer))
        finally:
            transfer.end()
        return ProxyAnswer(204, [])


def _refusal(error: errors.NovaError) -> ProxyAnswer:
    """Return a refusal, which closes the connection: an unread body may follow the request."""
    refusal = ProxyRefusal(kind=error.kind, code=error.code, message=error.message)
    headers = {"Content-Type": JSON, "Connection": "close"}
    if error.status == 503:
        headers["Retry-After"] = COME_AGAIN_S
    return ProxyAnswer(error.status, [msgspec.json.encode(refusal)], headers)


def build(images: ImageService, access: ImageAccess, slots: TransferSlots) -> RequestId:
    """Return the complete application."""
    return RequestId(ImageProxyApp(images, access, slots))
