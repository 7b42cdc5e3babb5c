"""Transfer of an image's data to a file: a broken stream resumes where it broke off, for any source."""

from __future__ import annotations

import contextlib
import hashlib
import logging
import os
from collections.abc import Callable, Iterator
from typing import BinaryIO, NamedTuple, Protocol

import requests
import urllib3.exceptions

from nova import concurrency, errors, failures
from nova.model.image.images import Image

LOG = logging.getLogger(__name__)

CHUNK_BYTES = 1 << 20  # large, because each costs an iteration of Python
#: Errors of the libraries if the connection breaks within an answer's body.
BROKEN = (requests.RequestException, urllib3.exceptions.HTTPError, OSError)


class ImageData:
    """The body of an answer. ``translated`` turns a library's exception into a nova error."""

    def __init__(self, answer: requests.Response, translated: Callable[[Exception], errors.NovaError]) -> None:
        self._answer, self._translated = answer, translated
        length = answer.headers.get("Content-Length", "")
        self.length = int(length) if length.isdigit() else None  # in bytes; None if unknown
        self.partial = answer.status_code == 206

    def __iter__(self) -> Iterator[bytes]:
        """Yield parts of ``CHUNK_BYTES``. Raises Unavailable if the stream breaks off."""
        with failures.translated(BROKEN, self._translated):
            while chunk := self._answer.raw.read(CHUNK_BYTES):
                yield chunk

    def close(self) -> None:
        """Close the body; if it was not read to its end, its connection is closed, too. May be called twice."""
        self._answer.close()


class ImageDataSource(Protocol):
    """A source of images' data."""

    def open(self, image_id: str, wanted: str = "") -> ImageData:
        """Return the data from the first byte, or of the Range in ``wanted``. Raises image.NotFound, Unavailable."""


class Retries(NamedTuple):
    """Number of retries of a broken stream, and the pause before the first."""

    most: int = 3
    wait_s: float = 0.5


USUAL = Retries()


def download(source: ImageDataSource, image: Image, path: str, limit_bytes: int | None = None,
             retries: Retries = USUAL) -> int:
    """Write the image's data to the new file ``path`` (0600), verify its hash, and return its length in bytes.

    Raises image.TooLong beyond ``limit_bytes`` (or the size in the record); image.Corrupt; Unavailable; the original
    OSError from the disk. The caller removes a partial file.
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
    """The file, and the hash of its content, which is updated during the transfer, so that the file is not read
    again."""

    def __init__(self, file: BinaryIO, image: Image) -> None:
        self._file, self._image = file, image
        self._algorithm, self._expected = _hash_of(image)
        self.restart()

    def restart(self) -> None:
        """Discard the content."""
        self._file.seek(0)
        self._file.truncate()
        self._hash = hashlib.new(self._algorithm, usedforsecurity=False) if self._expected else None

    def tell(self) -> int:
        """Return the number of bytes written."""
        return self._file.tell()

    def write(self, chunk: bytes) -> None:
        """Write the whole chunk. If threads are green, hashing runs in a native thread, so that others can run
        meanwhile."""
        view = memoryview(chunk)
        while view:
            view = view[self._file.write(view) or 0:]
        if self._hash is not None:
            concurrency.run_in_thread(self._hash.update, chunk)

    def check(self) -> None:
        """Verify the hash. Raises image.Corrupt."""
        if self._hash is None:
            LOG.warning("image %s has no hash that can be verified", self._image.id)
            return
        found = self._hash.hexdigest()
        if found != self._expected:
            raise errors.image.Corrupt(image_id=self._image.id, algorithm=self._algorithm)


def _hash_of(image: Image) -> tuple[str, str]:
    """Return (algorithm, value) of the image's hash; empty if it has none that can be verified."""
    algorithm, expected = image.os_hash_algo or "", image.os_hash_value or ""
    if not (algorithm and expected):
        algorithm, expected = "md5", image.checksum or ""
    return (algorithm, expected) if expected and algorithm in hashlib.algorithms_available else ("", "")


def _stream_all(source: ImageDataSource, image: Image, target: _Target, limit: int | None, retries: Retries) -> None:
    """Stream all data, with retries. Only consecutive attempts without progress are counted."""
    failed = furthest = 0
    while True:
        try:
            return _stream(source, image, target, limit)
        except errors.Unavailable:
            failed = 1 if target.tell() > furthest else failed + 1
            furthest = max(furthest, target.tell())
            if failed > retries.most:
                raise
            LOG.warning("download of image %s broke off at byte %d; resuming", image.id, target.tell())
            concurrency.sleep(min(retries.wait_s * 2 ** (failed - 1), 5))


def _stream(source: ImageDataSource, image: Image, target: _Target, limit: int | None) -> None:
    begin = target.tell()
    data = source.open(image.id, f"bytes={begin}-" if begin else "")
    with contextlib.closing(data):
        if begin and not data.partial:  # a service that cannot resume starts at the beginning
            target.restart()
        for chunk in data:
            if limit is not None and target.tell() + len(chunk) > limit:
                raise errors.image.TooLong(image_id=image.id, limit=limit)
            target.write(chunk)
    if image.size_bytes and target.tell() < image.size_bytes:
        raise errors.service.Unavailable(service="image", reason=f"the data of image {image.id} ended too early")


class SeekableFile(Protocol):
    """A file that can be read repeatedly, or an object with these methods."""

    def read(self, size: int = -1, /) -> bytes:
        """Return at most ``size`` bytes; empty at the end."""

    def seek(self, offset: int, whence: int = 0, /) -> int:
        """Return the new position, from the beginning."""


class Upload:
    """A file as the body of a request; each attempt sends it from its beginning."""

    def __init__(self, file: SeekableFile) -> None:
        self._file = file
        self._length = file.seek(0, os.SEEK_END)

    def __len__(self) -> int:
        return self._length

    def __iter__(self) -> Iterator[bytes]:
        self._file.seek(0)
        while chunk := self._file.read(CHUNK_BYTES):
            yield chunk
