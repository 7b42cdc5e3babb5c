"""The image proxy, as a compute host sees it: images come from it and snapshots go there, each by a ticket.

Tickets come with orders (``hold``); whoever asks for an image finds the newest of it. A host has no other credential.
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

from nova import concurrency, context, decoding, errors, tracing
from nova.clients import image_data
from nova.clients.image_data import BROKEN, ImageData, Retries, SeekableFile, Upload
from nova.conf.base import Options
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
BUSY_S = 600.0  # for which a proxy may say that it is busy, before that counts as its absence
BUSY, EXPIRED = errors.image.ProxyBusy.code, errors.image.TicketExpired.code
REQUEST_ID = "X-OpenStack-Request-ID"

T = TypeVar("T")

SecretsOfHost = Callable[[HostName], Sequence[str]]


class ProxySettings(NamedTuple):
    """``verify``: as requests has it: a file of authorities, or whether there is to be any check."""

    verify: str | bool = True
    retries: Retries = image_data.USUAL
    read_timeout_s: float = 60.0


class HeldTickets:
    """The tickets that came with orders, in memory alone: of each image and direction the one that lasts longest."""

    def __init__(self, host: HostName, clock: Callable[[], float] = time.time) -> None:
        self._host, self._clock = host, clock
        self._held: dict[tuple[str, str], ImageTicket] = {}
        self._lock = threading.Lock()

    def hold(self, tickets: Iterable[ImageTicket]) -> None:
        """Keep these, and forget what has expired."""
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
        """The ticket for the image and the first of these directions that there is one for. image.TicketMissing."""
        with self._lock:
            for direction in directions:
                if ticket := self._held.get((image_id, direction)):
                    return ticket
        raise errors.image.TicketMissing(host=self._host, image_id=image_id)


class _Ask(NamedTuple):
    """One request. ``stream``: its answer is read by whoever asked."""

    method: str
    image_id: str
    path: str
    directions: tuple[str, ...]
    wanted: str = ""
    data: Upload | None = None
    stream: bool = False


class ImageProxy:
    """``secrets``: the host's own, of which there are several while it changes them (``nova.rpc.host_secret``)."""

    def __init__(self, host: HostName, secrets: SecretsOfHost, settings: ProxySettings | None = None) -> None:
        self._host, self._secrets, self._settings = host, secrets, settings or ProxySettings()
        self._tickets = HeldTickets(host)
        self._session = requests.Session()
        self._session.trust_env = False  # neither a proxy of the web nor a .netrc has to do with this
        self._session.verify = self._settings.verify
        self._turn = itertools.count()

    def hold(self, tickets: Iterable[ImageTicket]) -> None:
        """The tickets of an order that came."""
        self._tickets.hold(tickets)

    def show(self, image_id: str) -> Image:
        """What the image service says of it now. image.TicketMissing; NotFound; Unavailable."""
        return self._decoded(_Ask("GET", image_id, record_path(image_id), (READ, WRITE)), Image)

    def locations(self, image_id: str) -> tuple[RbdLocation, ...]:
        """Where its data lie in Ceph, as the image service says. image.TicketMissing; NotFound; Unavailable."""
        urls = self._decoded(_Ask("GET", image_id, locations_path(image_id), (READ,)), tuple[str, ...])
        return tuple(found for found in map(rbd_location, urls) if found is not None)

    def open(self, image_id: str, wanted: str = "") -> ImageData:
        """See ``nova.clients.image_data.ImageDataSource``. image.TicketMissing."""
        answer = self._call(_Ask("GET", image_id, data_path(image_id), (READ,), wanted, stream=True))
        return ImageData(answer, lambda error: _unavailable(_reason(error)))

    def download(self, image: Image, path: str, limit_bytes: int | None = None) -> int:
        """See ``nova.clients.image_data.download``. image.TicketMissing."""
        return image_data.download(self, image, path, limit_bytes, self._settings.retries)

    def upload(self, image_id: str, source: SeekableFile | str) -> int:
        """Send the data (a path, or a file that can seek: all of it) of an image that has none; its length in bytes.

        Nothing to do when it has just this much data already: an upload that is repeated has been done.
        image.TicketMissing; NotFound (deleted meanwhile); Conflict (it has other data); Forbidden (the image service's
        quota); Unavailable; OSError from the disk as it is.
        """
        with contextlib.ExitStack() as stack:
            data = Upload(stack.enter_context(open(source, "rb")) if isinstance(source, str) else source)
            self.show(image_id)  # who is refused hears it here: behind a body that nobody reads, nothing is heard
            try:
                self._call(_Ask("PUT", image_id, data_path(image_id), (WRITE,), data=data))
            except errors.Conflict:
                there = self.show(image_id)
                if there.status != "active" or there.size_bytes != len(data):
                    raise
            return len(data)

    def offer(self, image_id: str, location: RbdLocation) -> None:
        """Have the image service take data that lie in Ceph; it has them when this returns. Unavailable: it may or may
        not have taken them. image.TicketMissing, and what is refused: it has not."""
        url = Upload(io.BytesIO(location.url.encode()))
        self._call(_Ask("PUT", image_id, locations_path(image_id), (WRITE,), data=url))

    def _decoded(self, ask: _Ask, kind: type[T]) -> T:
        answer = self._call(ask)
        try:
            return decoding.from_json(answer.content, kind)
        except msgspec.MsgspecError as error:
            raise _unavailable(f"its answer to {ask.path} is malformed ({error})") from None

    def _call(self, ask: _Ask) -> requests.Response:
        """The answer to one request, tried again while nobody answers, and for longer while the proxy is busy."""
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
        try:
            answer = self._session.request(
                ask.method, server.rstrip("/") + ask.path, headers=headers, data=ask.data, stream=ask.stream,
                timeout=(CONNECT_TIMEOUT_S, self._settings.read_timeout_s), allow_redirects=False)
            if answer.status_code < 300:
                return answer
            raise _refused(answer)
        except BROKEN as error:
            raise _unavailable(_reason(error)) from error


def _refused(answer: requests.Response) -> errors.NovaError:
    """The error that the proxy tells; what stands between may answer in words of its own."""
    with contextlib.closing(answer):
        try:
            refusal = decoding.from_json(answer.content, ProxyRefusal)
        except msgspec.MsgspecError:
            return _unavailable(f"{answer.status_code} {answer.reason}")
    return errors.from_wire(refusal.kind, refusal.code, refusal.message, {})


def _unavailable(reason: str) -> errors.NovaError:
    return errors.service.Unavailable(service="image proxy", reason=reason)


def _reason(error: Exception) -> str:
    """One line about the error."""
    if isinstance(error, requests.Timeout):
        return "timeout"
    return str(error).splitlines()[0][:200] if str(error) else type(error).__name__


def of_group(group: Options, host: HostName, secrets: SecretsOfHost) -> ImageProxy:
    """A client as a compute host's ``[image_proxy]`` says."""
    settings = ProxySettings(group.cafile or not group.insecure, Retries(group.num_retries), group.read_timeout)
    return ImageProxy(host, secrets, settings)
