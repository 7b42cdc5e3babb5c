"""Images under way: as many at a time as there are places, in parts, so that none is in memory whole."""

from __future__ import annotations

import logging
import re
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Protocol
from wsgiref.types import InputStream

from nova import context, errors, metrics
from nova.clients.image_data import CHUNK_BYTES, ImageData
from nova.model.image.image_tickets import TicketFacts
from nova.model.image.images import Image

LOG = logging.getLogger(__name__)

WAIT_S = 5.0  # for a place, before the host is told to come again
_RANGE = re.compile(r"bytes=(\d{1,18})-(\d{0,18})")


class ImageService(Protocol):
    """What we use of the image service, with our own credentials (``nova.clients.glance.Glance``)."""

    def show(self, image_id: str) -> Image:
        """What it says of the image now. image.NotFound; Unavailable."""

    def locations(self, image_id: str) -> tuple[str, ...]:
        """Addresses of its data in its stores, which may hold passwords. image.NotFound; Unavailable."""

    def add_location(self, image_id: str, url: str) -> None:
        """Let an image have the data at the address; see ``nova.clients.glance``."""

    def open(self, image_id: str, wanted: str = "") -> ImageData:
        """The data from the first byte, or of the Range that is ``wanted``. image.NotFound; Unavailable."""

    def send(self, image_id: str, data: Iterable[bytes]) -> None:
        """Data for an image that has none. image.NotFound; Conflict; Forbidden; Unavailable."""


class TransferSlots:
    """As many transfers as may be under way at a time."""

    def __init__(self, count: int, wait_s: float = WAIT_S) -> None:
        self._free, self._wait_s = threading.BoundedSemaphore(count), wait_s

    def take(self) -> Callable[[], None]:
        """What gives the place back; called twice, it does so once. image.ProxyBusy: none came free in time."""
        if not self._free.acquire(timeout=self._wait_s):
            raise errors.image.ProxyBusy()
        given_back = threading.Lock()

        def give_back() -> None:
            if given_back.acquire(blocking=False):
                self._free.release()
        return give_back


class Transfer:
    """One image under way: what of it went by, and for whom. Its end is a line in the log."""

    def __init__(self, ticket: TicketFacts, give_back: Callable[[], None]) -> None:
        self._ticket, self._give_back = ticket, give_back
        self._context, self._started = context.current(), time.monotonic()
        self._bytes, self._whole = 0, False
        self._passed = metrics.IMAGE_BYTES.labels(ticket.direction)

    def passing(self, parts: Iterable[bytes]) -> Iterator[bytes]:
        """The parts as they go by. ConnectionError where they break off: what was promised does not come any more."""
        try:
            for part in parts:
                self._bytes += len(part)
                self._passed.inc(len(part))
                yield part
        except errors.Unavailable as error:
            with context.entered(self._context):
                LOG.warning("image %s broke off at the image service: %s", self._ticket.image_id, error.message)
            raise ConnectionAbortedError(error.message) from error
        self._whole = True

    def end(self) -> None:
        """May be called twice."""
        self._give_back()
        if self._started:
            seconds, self._started = time.monotonic() - self._started, 0.0
            with context.entered(self._context):
                LOG.info("%s image %s for host %s: %s%d bytes in %.1f s", self._ticket.direction, self._ticket.image_id,
                         self._ticket.host, "" if self._whole else "broken off after ", self._bytes, seconds,
                         extra={"server": self._ticket.server, "host_": self._ticket.host})


class Outgoing:
    """The body of an answer: the image service's data, at the pace at which the host takes it."""

    def __init__(self, data: ImageData, transfer: Transfer) -> None:
        self._data, self._transfer = data, transfer

    def __iter__(self) -> Iterator[bytes]:
        return self._transfer.passing(self._data)

    def close(self) -> None:
        """As WSGI wants it: called at the end, whatever that was."""
        self._data.close()
        self._transfer.end()


class Incoming:
    """The body of a request, of ``length`` bytes, on its way to the image service: it can be read once."""

    def __init__(self, stream: InputStream, length: int) -> None:
        self._stream, self._length, self._begun = stream, length, False

    def __len__(self) -> int:
        return self._length

    def __iter__(self) -> Iterator[bytes]:
        if self._begun:
            raise ConnectionAbortedError("a body that comes from a host cannot be sent twice")
        self._begun, left = True, self._length
        while left:
            part = self._stream.read(min(left, CHUNK_BYTES))
            left -= len(part)
            yield part


class MeteredBody:
    """A body that its transfer counts as it goes by."""

    def __init__(self, body: Incoming, transfer: Transfer) -> None:
        self._body, self._transfer = body, transfer

    def __len__(self) -> int:
        return len(self._body)

    def __iter__(self) -> Iterator[bytes]:
        return self._transfer.passing(self._body)


def content_range(image: Image, wanted: str) -> str:
    """The Content-Range of an answer that has what is wanted. image.ProxyRange: the image has nothing of it, or it is
    of another form than ``bytes=FIRST-`` and ``bytes=FIRST-LAST``."""
    found, size = _RANGE.fullmatch(wanted), image.size_bytes
    first, last = (int(found[1]), int(found[2] or size - 1)) if found else (size, 0)
    if first >= size or last < first:
        raise errors.image.ProxyRange(image_id=image.id, size=size, range=wanted)
    return f"bytes {first}-{min(last, size - 1)}/{size}"
