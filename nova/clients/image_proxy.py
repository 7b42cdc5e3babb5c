"""Client of the image proxy for compute hosts: images are downloaded from it and snapshots uploaded to it, each with a
ticket.

Tickets come with orders (``hold``); a request for an image uses its newest ticket. A host has no other credential.
"""

from __future__ import annotations

import contextlib
import io
import itertools
import logging
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple, TypeVar

import msgspec
import requests

from nova import concurrency, context, decoding, errors, failures, tracing
from nova.clients import image_data
from nova.clients.image_data import BROKEN, ImageData, Retries, SeekableFile, Upload
from nova.conf.image_proxy import ImageProxyOptions
from nova.model.base import HostName
from nova.model.image.image_tickets import (
    READ,
    WRITE,
    ImageTicket,
    ProvenRequest,
    ProxyRefusal,
    data_path,
    key_of,
    locations_path,
    proven_headers,
    record_path,
    stamp,
)
from nova.model.image.images import Image
from nova.model.image.rbd_locations import RbdLocation, rbd_location

LOG = logging.getLogger(__name__)

CONNECT_TIMEOUT_S = 10.0
LONGEST_PAUSE_S = 5.0
BUSY_S = 600.0  # how long a proxy may report that it is busy before it counts as unavailable
BUSY, EXPIRED = errors.image.ProxyBusy.code, errors.image.TicketExpired.code
REQUEST_ID = "X-OpenStack-Request-ID"

T = TypeVar("T")

SecretsOfHost = Callable[[HostName], Sequence[str]]


class ProxySettings(NamedTuple):
    """Settings of the client. ``verify`` as in requests: a file of CA certificates, or whether to verify at all."""

    verify: str | bool = True
    retries: Retries = image_data.USUAL
    read_timeout_s: float = 60.0


class HeldTickets:
    """Tickets of orders, only in memory: for each image and direction, the one with the latest expiry."""

    def __init__(self, host: HostName, clock: Callable[[], float] = time.time) -> None:
        self._host, self._clock = host, clock
        self._held: dict[tuple[str, str], ImageTicket] = {}
        self._lock = threading.Lock()

    def hold(self, tickets: Iterable[ImageTicket]) -> None:
        """Keep these tickets, and forget expired ones."""
        now = self._clock()
        with self._lock:
            for ticket in tickets:
                place = ticket.image_id, ticket.direction
                held = self._held.get(place)
                if held is None or held.until <= ticket.until:
                    self._held[place] = ticket
            for place in [place for place, ticket in self._held.items() if ticket.until < now]:
                del self._held[place]

    def find(self, image_id: str, directions: Sequence[str]) -> ImageTicket:
        """Return the image's ticket for the first of these directions that has one. Raises image.TicketMissing."""
        with self._lock:
            for direction in directions:
                if ticket := self._held.get((image_id, direction)):
                    return ticket
        raise errors.image.TicketMissing(host=self._host, image_id=image_id)


class _Ask(NamedTuple):
    """A request to the image proxy. ``stream``: the caller reads the body of the answer."""

    method: str
    image_id: str
    path: str
    directions: tuple[str, ...]
    wanted: str = ""
    data: Upload | None = None
    stream: bool = False


class ImageProxy:
    """Client of the image proxy. ``secrets``: returns the host's signing keys; there are several while the host changes
    them (``nova.rpc.host_secret``)."""

    def __init__(self, host: HostName, secrets: SecretsOfHost, settings: ProxySettings | None = None) -> None:
        self._host, self._secrets, self._settings = host, secrets, settings or ProxySettings()
        self._tickets = HeldTickets(host)
        self._session = requests.Session()
        self._session.trust_env = False  # web proxies and .netrc do not apply
        self._session.verify = self._settings.verify
        self._turn = itertools.count()

    def hold(self, tickets: Iterable[ImageTicket]) -> None:
        """Keep the tickets of an incoming order."""
        self._tickets.hold(tickets)

    def show(self, image_id: str) -> Image:
        """Return the image service's current record. Raises image.TicketMissing, NotFound, Unavailable."""
        return self._decoded(_Ask("GET", image_id, record_path(image_id), (READ, WRITE)), Image)

    def locations(self, image_id: str) -> tuple[RbdLocation, ...]:
        """Return where the image's data are in Ceph, according to the image service. Raises image.TicketMissing,
        NotFound, Unavailable."""
        urls = self._decoded(_Ask("GET", image_id, locations_path(image_id), (READ,)), tuple[str, ...])
        return tuple(found for found in map(rbd_location, urls) if found is not None)

    def open(self, image_id: str, wanted: str = "") -> ImageData:
        """Open the data of an image (see ``nova.clients.image_data.ImageDataSource``). Raises image.TicketMissing."""
        answer = self._call(_Ask("GET", image_id, data_path(image_id), (READ,), wanted, stream=True))
        return ImageData(answer, lambda error: _unavailable(_reason(error)))

    def download(self, image: Image, path: str, limit_bytes: int | None = None) -> int:
        """Download an image (see ``nova.clients.image_data.download``). Raises image.TicketMissing."""
        return image_data.download(self, image, path, limit_bytes, self._settings.retries)

    def upload(self, image_id: str, source: SeekableFile | str) -> int:
        """Upload all data (a path, or a seekable file) of an image without data; return their length in bytes.

        If the image already has exactly this much data, the upload is a repetition and succeeds. Raises
        image.TicketMissing; NotFound if the image was deleted meanwhile; Conflict if it has other data; Forbidden for
        the image service's quota; Unavailable; the original OSError from the disk.
        """
        with contextlib.ExitStack() as stack:
            data = Upload(stack.enter_context(open(source, "rb")) if isinstance(source, str) else source)
            self.show(image_id)  # detects a refusal early: while an unread body is sent, no answer is read
            try:
                self._call(_Ask("PUT", image_id, data_path(image_id), (WRITE,), data=data))
            except errors.Conflict:
                there = self.show(image_id)
                if there.status != "active" or there.size_bytes != len(data):
                    raise
            return len(data)

    def offer(self, image_id: str, location: RbdLocation) -> None:
        """Register a Ceph location as the image's data; return when the image service has accepted it. Raises
        Unavailable if it may or may not have accepted it; image.TicketMissing and any other refusal if it has not."""
        url = Upload(io.BytesIO(location.url.encode()))
        self._call(_Ask("PUT", image_id, locations_path(image_id), (WRITE,), data=url))

    def _decoded(self, ask: _Ask, kind: type[T]) -> T:
        answer = self._call(ask)
        with failures.replaced(msgspec.MsgspecError,
                lambda error: _unavailable(f"its answer to {ask.path} is malformed ({error})")):
            return decoding.from_json(answer.content, kind)

    def _call(self, ask: _Ask) -> requests.Response:
        """Return the answer to one request. Retries while the proxy does not answer, and longer while it is busy."""
        ticket = self._tickets.find(ask.image_id, ask.directions)
        key = key_of(ticket, self._secrets(self._host))
        start, failed, until = next(self._turn), 0, time.monotonic() + BUSY_S
        for attempt in itertools.count():
            try:
                return self._once(ask, ticket, key, ticket.servers[(start + attempt) % len(ticket.servers)])
            except errors.Unavailable as error:
                failed += error.code != BUSY
                if error.code == EXPIRED or failed > self._settings.retries.most or time.monotonic() > until:
                    raise
                LOG.warning("%s of image %s failed (attempt %d): %s", ask.method, ask.image_id, attempt + 1, error)
            concurrency.sleep(min(self._settings.retries.wait_s * 2 ** min(attempt, 8), LONGEST_PAUSE_S))
        raise AssertionError("unreachable")

    def _once(self, ask: _Ask, ticket: ImageTicket, key: str, server: str) -> requests.Response:
        length = "" if ask.data is None else str(len(ask.data))
        request = ProvenRequest(ask.method, ask.path, ask.wanted, length, stamp(time.time()))
        headers = {**proven_headers(ticket, key, request), "Accept-Encoding": "identity",
                   REQUEST_ID: context.current().request_id, **tracing.headers(),
                   **({"Range": ask.wanted} if ask.wanted else {})}
        with failures.translated(BROKEN, lambda error: _unavailable(_reason(error))):
            answer = self._session.request(
                ask.method, server.rstrip("/") + ask.path, headers=headers, data=ask.data, stream=ask.stream,
                timeout=(CONNECT_TIMEOUT_S, self._settings.read_timeout_s), allow_redirects=False)
            if answer.status_code < 300:
                return answer
            raise _refused(answer)


def _refused(answer: requests.Response) -> errors.NovaError:
    """Return the error in the proxy's answer; an intermediate server may answer in another format."""
    with contextlib.closing(answer):
        try:
            refusal = decoding.from_json(answer.content, ProxyRefusal)
        except msgspec.MsgspecError:
            return _unavailable(f"{answer.status_code} {answer.reason}")
    return errors.from_wire(refusal.kind, refusal.code, refusal.message, {})


def _unavailable(reason: str) -> errors.NovaError:
    return errors.service.Unavailable(service="image proxy", reason=reason)


def _reason(error: Exception) -> str:
    """Return a one-line description of the error."""
    if isinstance(error, requests.Timeout):
        return "timeout"
    return str(error).splitlines()[0][:200] if str(error) else type(error).__name__


def of_group(group: ImageProxyOptions, host: HostName, secrets: SecretsOfHost) -> ImageProxy:
    """Return a client for a compute host's ``[image_proxy]``."""
    settings = ProxySettings(group.cafile or not group.insecure, Retries(group.num_retries), group.read_timeout)
    return ImageProxy(host, secrets, settings)
