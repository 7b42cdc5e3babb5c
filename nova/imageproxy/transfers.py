"""Transfers of images: limited in number, and in chunks, so that no image is completely in memory."""

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

WAIT_S = 5.0  # for a free slot, before the host must retry later
_RANGE = re.compile(r"bytes=(\d{1,18})-(\d{0,18})")


class ImageService(Protocol):
    """The calls to the image service, with the proxy's own credentials (``nova.clients.glance.Glance``)."""

    def show(self, image_id: str) -> Image:
        """Return the current record of the image. Raises image.NotFound and Unavailable."""

    def locations(self, image_id: str) -> tuple[str, ...]:
        """Return the URLs of its data in the stores, which may contain passwords. Raises image.NotFound and
        Unavailable."""

    def add_location(self, image_id: str, url: str) -> None:
        """Set the image's data to those at the URL; see ``nova.clients.glance``."""

    def open(self, image_id: str, wanted: str = "") -> ImageData:
        """Return the data from the first byte, or of the ``wanted`` Range. Raises image.NotFound and Unavailable."""

    def send(self, image_id: str, data: Iterable[bytes]) -> None:
        """Upload data for an image without data. Raises image.NotFound, Conflict, Forbidden and Unavailable."""


class TransferSlots:
    """A limited number of slots for concurrent transfers."""

    def __init__(self, count: int, wait_s: float = WAIT_S) -> None:
        self._free, self._wait_s = threading.BoundedSemaphore(count), wait_s

    def take(self) -> Callable[[], None]:
        """Take a slot, and return the function that releases it; repeated calls have no effect. Raises image.ProxyBusy
        after a timeout."""
        if not self._free.acquire(timeout=self._wait_s):
            raise errors.image.ProxyBusy()
        given_back = threading.Lock()

        def give_back() -> None:
            if given_back.acquire(blocking=False):
                self._free.release()
        return give_back


class Transfer:
    """A running transfer of an image: the bytes and the host. Its end is logged."""

    def __init__(self, ticket: TicketFacts, give_back: Callable[[], None]) -> None:
        self._ticket, self._give_back = ticket, give_back
        self._context, self._started = context.current(), time.monotonic()
        self._bytes, self._whole = 0, False
        self._passed = metrics.IMAGE_BYTES.labels(ticket.direction)

    def passing(self, parts: Iterable[bytes]) -> Iterator[bytes]:
        """Yield and count the chunks. Raises ConnectionError if the source fails: the promised data cannot be
        completed."""
        try:
            for part in parts:
                self._bytes += len(part)
                self._passed.inc(len(part))
                yield part
        except errors.Unavailable as error:
            with context.entered(self._context):
                LOG.warning("the image service broke off image %s: %s", self._ticket.image_id, error.message)
            raise ConnectionAbortedError(error.message) from error
        self._whole = True

    def end(self) -> None:
        """End the transfer, and log it. May be called twice."""
        self._give_back()
        if self._started:
            seconds, self._started = time.monotonic() - self._started, 0.0
            with context.entered(self._context):
                LOG.info("%s image %s for host %s: %s%d bytes in %.1f s", self._ticket.direction, self._ticket.image_id,
                         self._ticket.host, "" if self._whole else "interrupted after ", self._bytes, seconds,
                         extra={"server": self._ticket.server, "host_": self._ticket.host})


class Outgoing:
    """The body of a response: the image service's data, at the speed of the host."""

    def __init__(self, data: ImageData, transfer: Transfer) -> None:
        self._data, self._transfer = data, transfer

    def __iter__(self) -> Iterator[bytes]:
        return self._transfer.passing(self._data)

    def close(self) -> None:
        """Close the source and end the transfer. WSGI calls this after every response."""
        self._data.close()
        self._transfer.end()


class Incoming:
    """The body of a request, of ``length`` bytes, for the image service: it can be read once."""

    def __init__(self, stream: InputStream, length: int) -> None:
        self._stream, self._length, self._begun = stream, length, False

    def __len__(self) -> int:
        return self._length

    def __iter__(self) -> Iterator[bytes]:
        if self._begun:
            raise ConnectionAbortedError("the body of a request cannot be sent twice")
        self._begun, left = True, self._length
        while left:
            part = self._stream.read(min(left, CHUNK_BYTES))
            left -= len(part)
            yield part


class MeteredBody:
    """A body whose transfer counts its bytes."""

    def __init__(self, body: Incoming, transfer: Transfer) -> None:
        self._body, self._transfer = body, transfer

    def __len__(self) -> int:
        return len(self._body)

    def __iter__(self) -> Iterator[bytes]:
        return self._transfer.passing(self._body)


def content_range(image: Image, wanted: str) -> str:
    """Return the Content-Range of a response with the wanted range. Raises image.ProxyRange if the image has no data in
    it, or its form is not ``bytes=FIRST-`` or ``bytes=FIRST-LAST``."""
    found, size = _RANGE.fullmatch(wanted), image.size_bytes
    first, last = (int(found[1]), int(found[2] or size - 1)) if found else (size, 0)
    if first >= size or last < first:
        raise errors.image.ProxyRange(image_id=image.id, size=size, range=wanted)
    return f"bytes {first}-{min(last, size - 1)}/{size}"
