"""An image's data on their way to a file: whatever they come from, a broken stream goes on where it broke off."""

from __future__ import annotations

import contextlib
import hashlib
import logging
import os
from collections.abc import Callable, Iterator
from typing import BinaryIO, NamedTuple, Protocol

import requests
import urllib3.exceptions

from nova import concurrency, errors
from nova.model.image.images import Image

LOG = logging.getLogger(__name__)

CHUNK_BYTES = 1 << 20  # large: each costs a turn of Python
#: What a library raises when the line is cut within an answer's body.
BROKEN = (requests.RequestException, urllib3.exceptions.HTTPError, OSError)


class ImageData:
    """The body of an answer. ``translated`` makes an error of ours of what a library raises."""

    def __init__(self, answer: requests.Response, translated: Callable[[Exception], errors.NovaError]) -> None:
        self._answer, self._translated = answer, translated
        length = answer.headers.get("Content-Length", "")
        self.length = int(length) if length.isdigit() else None  # bytes; None: nobody says
        self.partial = answer.status_code == 206

    def __iter__(self) -> Iterator[bytes]:
        """In parts of ``CHUNK_BYTES``. Unavailable when it breaks off."""
        try:
            while chunk := self._answer.raw.read(CHUNK_BYTES):
                yield chunk
        except BROKEN as error:
            raise self._translated(error) from error

    def close(self) -> None:
        """A body that was not read to its end takes its connection with it. May be called twice."""
        self._answer.close()


class ImageDataSource(Protocol):
    """Who has images' data."""

    def open(self, image_id: str, wanted: str = "") -> ImageData:
        """The data from the first byte, or of the Range that is ``wanted``. image.NotFound; Unavailable."""


class Retries(NamedTuple):
    """How often a stream that broke off is begun again, and how long is waited before the first time."""

    most: int = 3
    wait_s: float = 0.5


USUAL = Retries()


def download(source: ImageDataSource, image: Image, path: str, limit_bytes: int | None = None,
             retries: Retries = USUAL) -> int:
    """Write the image's data to the new file ``path`` (0600), checked against its hash; its length in bytes.

    image.TooLong beyond ``limit_bytes`` (or the size that the record tells); image.Corrupt; Unavailable; OSError from
    the disk as it is. The caller removes what a failure leaves.
    """
    limit = limit_bytes if not image.size_bytes else min(image.size_bytes, limit_bytes or image.size_bytes)
    opened = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o600)
    with os.fdopen(opened, "wb", buffering=0) as file:
        target = _Target(file, image)
        _stream_all(source, image, target, limit, retries)
        target.check()
        concurrency.run_in_thread(os.fsync, file.fileno())
        return target.tell()


class _Target:
    """The file, and the hash of what is in it so far: it is taken on the way, so that nothing is read again."""

    def __init__(self, file: BinaryIO, image: Image) -> None:
        self._file, self._image = file, image
        self._algorithm, self._expected = _hash_of(image)
        self.begin_anew()

    def begin_anew(self) -> None:
        """Nothing is in it."""
        self._file.seek(0)
        self._file.truncate()
        self._hash = hashlib.new(self._algorithm, usedforsecurity=False) if self._expected else None

    def tell(self) -> int:
        """How many bytes are in it."""
        return self._file.tell()

    def write(self, chunk: bytes) -> None:
        """All of the chunk. In another thread where threads are green: others have their turn meanwhile."""
        view = memoryview(chunk)
        while view:
            view = view[self._file.write(view) or 0:]
        if self._hash is not None:
            concurrency.run_in_thread(self._hash.update, chunk)

    def check(self) -> None:
        """image.Corrupt."""
        if self._hash is None:
            LOG.warning("Image %s has no hash that can be checked", self._image.id)
            return
        found = self._hash.hexdigest()
        if found != self._expected:
            raise errors.image.Corrupt(image_id=self._image.id, algorithm=self._algorithm)


def _hash_of(image: Image) -> tuple[str, str]:
    """(algorithm, value) of the image's hash; empty where there is none that can be checked."""
    algorithm, expected = image.os_hash_algo or "", image.os_hash_value or ""
    if not (algorithm and expected):
        algorithm, expected = "md5", image.checksum or ""
    return (algorithm, expected) if expected and algorithm in hashlib.algorithms_available else ("", "")


def _stream_all(source: ImageDataSource, image: Image, target: _Target, limit: int | None, retries: Retries) -> None:
    """Whoever gets on is tried again for as long as it does: only tries in a row that brought nothing are counted."""
    failed = furthest = 0
    while True:
        try:
            return _stream(source, image, target, limit)
        except errors.Unavailable:
            failed = 1 if target.tell() > furthest else failed + 1
            furthest = max(furthest, target.tell())
            if failed > retries.most:
                raise
            LOG.warning("Download of image %s broke off at byte %d; going on", image.id, target.tell())
            concurrency.sleep(min(retries.wait_s * 2 ** (failed - 1), 5))


def _stream(source: ImageDataSource, image: Image, target: _Target, limit: int | None) -> None:
    begin = target.tell()
    data = source.open(image.id, f"bytes={begin}-" if begin else "")
    with contextlib.closing(data):
        if begin and not data.partial:  # a service that cannot resume begins again
            target.begin_anew()
        for chunk in data:
            if limit is not None and target.tell() + len(chunk) > limit:
                raise errors.image.TooLong(image_id=image.id, limit=limit)
            target.write(chunk)
    if image.size_bytes and target.tell() < image.size_bytes:
        raise errors.service.Unavailable(service="image", reason=f"the data of image {image.id} ended too early")


class SeekableFile(Protocol):
    """What can be read more than once: a file, or what has so much of one."""

    def read(self, size: int = -1, /) -> bytes:
        """At most ``size`` bytes; none at the end."""

    def seek(self, offset: int, whence: int = 0, /) -> int:
        """Where it stands then, from the beginning."""


class Upload:
    """A file as the body of a request: each attempt sends it from its beginning."""

    def __init__(self, file: SeekableFile) -> None:
        self._file = file
        self._length = file.seek(0, os.SEEK_END)

    def __len__(self) -> int:
        return self._length

    def __iter__(self) -> Iterator[bytes]:
        self._file.seek(0)
        while chunk := self._file.read(CHUNK_BYTES):
            yield chunk
