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
from nova.model.images import Image

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
    with os.fdopen(opened, "wb", buffering=0) as target:
        _stream_all(source, image, target, limit, retries)
        length = target.tell()
        concurrency.run_in_thread(os.fsync, target.fileno())
    _check_hash(image, path)
    return length


def _stream_all(source: ImageDataSource, image: Image, target: BinaryIO, limit: int | None, retries: Retries) -> None:
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


def _stream(source: ImageDataSource, image: Image, target: BinaryIO, limit: int | None) -> None:
    begin = target.tell()
    data = source.open(image.id, f"bytes={begin}-" if begin else "")
    with contextlib.closing(data):
        if begin and not data.partial:  # a service that can not resume begins again
            target.seek(0)
            target.truncate()
        for chunk in data:
            if limit is not None and target.tell() + len(chunk) > limit:
                raise errors.image.TooLong(image_id=image.id, limit=limit)
            _write_all(target, chunk)
    if image.size_bytes and target.tell() < image.size_bytes:
        raise errors.service.Unavailable(service="image", reason=f"the data of image {image.id} ended too early")


def _write_all(target: BinaryIO, chunk: bytes) -> None:
    view = memoryview(chunk)
    while view:
        view = view[target.write(view) or 0:]


def _check_hash(image: Image, path: str) -> None:
    algorithm, expected = image.os_hash_algo, image.os_hash_value
    if not (algorithm and expected):
        algorithm, expected = "md5", image.checksum
    if not expected or algorithm not in hashlib.algorithms_available:
        LOG.warning("Image %s has no hash that can be checked", image.id)
        return
    if concurrency.run_in_thread(_digest, path, algorithm) != expected:
        raise errors.image.Corrupt(image_id=image.id, algorithm=algorithm)


def _digest(path: str, algorithm: str) -> str:
    with open(path, "rb") as data:
        return hashlib.file_digest(data, lambda: hashlib.new(algorithm, usedforsecurity=False)).hexdigest()


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
