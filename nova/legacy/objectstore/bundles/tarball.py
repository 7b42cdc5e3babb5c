"""Extraction of the image, which is the first file in a bundle's tarball. File names are never used, and nothing else
is extracted."""

from __future__ import annotations

import hashlib
import tarfile
import zlib
from collections.abc import Sequence
from pathlib import Path, PurePosixPath
from typing import BinaryIO, NamedTuple, cast

from nova import errors, failures
from nova.legacy.objectstore.bundles.streams import PIECE, BoundedFile, pump
from nova.legacy.objectstore.disk_space import DiskSpace

READ = 2 ** 18
HEADERS = 4 * 2 ** 20  # bytes of a tarball in addition to the image: tarfile keeps some of them in memory
MOST_MEMBERS = 1000
GZIP_BITS = 16 + zlib.MAX_WBITS


class ExpectedImage(NamedTuple):
    """The required properties of an image. ``limit``: maximum bytes; ``size``: exact bytes, if known; ``sha1``: of the
    uncompressed tarball, as euca-bundle-image computes it, or empty."""

    limit: int
    size: int | None = None
    sha1: str = ""


class GunzippedStream:
    """A gunzip reader with a byte budget. It has a file's ``read`` for tarfile."""

    def __init__(self, source: BinaryIO) -> None:
        self._source, self._inflate = source, zlib.decompressobj(GZIP_BITS)
        self._packed, self._budget, self._refusal = b"", 0, ""
        self.sha1 = hashlib.sha1(usedforsecurity=False)

    def allow(self, budget: int, refusal: str) -> None:
        """Set the budget of bytes that may follow. ``refusal``: the error's reason if more follow."""
        self._budget, self._refusal = budget, refusal

    def read(self, size: int) -> bytes:
        """Read up to ``size`` bytes; none at the end.

        Raises bundle.Tarball if the data exceeds the budget, or is truncated or damaged.
        """
        data = b""
        while not data:
            if self._inflate.eof and not self._next_member():
                return b""
            if not self._packed:
                self._packed = self._source.read(READ)
                if not self._packed:
                    raise errors.bundle.Tarball(reason="its gzip data is truncated")
            with failures.replaced(zlib.error,
                    lambda error: errors.bundle.Tarball(reason=f"its gzip data is damaged ({error})")):
                data = self._inflate.decompress(self._packed, size)
            self._packed = self._inflate.unconsumed_tail
        self._budget -= len(data)
        if self._budget < 0:
            raise errors.bundle.Tarball(reason=self._refusal)
        self.sha1.update(data)
        return data

    def _next_member(self) -> bool:
        """Start the next gzip member. Members may be concatenated, with zero bytes between and after them."""
        rest = self._inflate.unused_data.lstrip(b"\0")
        while not rest:
            piece = self._source.read(READ)
            if not piece:
                return False
            rest = piece.lstrip(b"\0")
        self._packed, self._inflate = rest, zlib.decompressobj(GZIP_BITS)
        return True


def unpack(source: Path, target: Path, expected: ExpectedImage, room: DiskSpace) -> None:
    """Write the image in the compressed tarball to the new file ``target``.

    Raises bundle.Tarball, bundle.Digest, bundle.WrongLength, bundle.TooLong; bundle.NoRoom before the first write, or
    if other programs fill the disk meanwhile.
    """
    with source.open("rb") as packed:
        stream = GunzippedStream(packed)
        # all errors that tarfile raises for hostile numbers
        with failures.replaced(
                (tarfile.TarError, ValueError, ArithmeticError, LookupError, RecursionError, TypeError),
                lambda error: errors.bundle.Tarball(reason=f"it is damaged ({type(error).__name__})"),
                but=(errors.NovaError, OSError)):
            _extract(stream, target, expected, room)
    if expected.sha1 not in ("", stream.sha1.hexdigest()):
        raise errors.bundle.Digest()


def _extract(stream: GunzippedStream, target: Path, expected: ExpectedImage, room: DiskSpace) -> None:
    stream.allow(HEADERS, "its headers are too long")
    with tarfile.open(fileobj=stream, mode="r|", bufsize=READ) as tar:  # type: ignore[call-overload]
        image = _first_file(tar)
        _check_size(image, expected)
        stream.allow(image.size + HEADERS, "its image is longer than its header says")
        with BoundedFile(target, room, image.size) as out:
            _copy(tar, image, out)
        stream.allow(HEADERS, "it contains more than an image")
        _check_rest(tar)
    while stream.read(READ):
        pass


def _first_file(tar: tarfile.TarFile) -> tarfile.TarInfo:
    for _ in range(MOST_MEMBERS):
        member = tar.next()
        if member is None:
            break
        _check(member)
        if member.isreg():
            return member
    raise errors.bundle.Tarball(reason="it contains no file")


def _check(member: tarfile.TarInfo) -> None:
    """Refuse suspicious members. Their names are not used, but such names indicate an attack."""
    path = PurePosixPath(member.name)
    if path.is_absolute() or ".." in path.parts or "\0" in member.name:
        raise errors.bundle.Tarball(reason="a name in it points outside its directory")
    if not (member.isreg() or member.isdir()):
        raise errors.bundle.Tarball(reason="it contains a link, device or other special file")


def _check_size(image: tarfile.TarInfo, expected: ExpectedImage) -> None:
    if image.size < 0:
        raise errors.bundle.Tarball(reason="its image has a negative size")
    if image.size > expected.limit:
        raise errors.bundle.TooLong(what="image", limit=expected.limit)
    if expected.size not in (None, image.size):
        raise errors.bundle.WrongLength(what="image", found=image.size, wanted=expected.size)
    end, entries = 0, cast("Sequence[tuple[int, int]]", image.sparse or ())
    for offset, size in entries:
        if not size:  # unused entry of the map
            continue
        if size < 0 or offset < end or offset + size > image.size:
            raise errors.bundle.Tarball(reason="the map of its sparse image is invalid")
        end = offset + size


def _copy(tar: tarfile.TarFile, image: tarfile.TarInfo, out: BoundedFile) -> None:
    data = tar.extractfile(image)
    if data is None:
        raise errors.bundle.Tarball(reason="it contains no file")

    def turn() -> int:
        piece = data.read(PIECE)
        out.write(piece)
        return len(piece)
    pump(turn)
    if out.tell() != image.size:
        raise errors.bundle.Tarball(reason="its image is truncated")


def _check_rest(tar: tarfile.TarFile) -> None:
    for _ in range(MOST_MEMBERS):
        member = tar.next()
        if member is None:
            return
        _check(member)
    raise errors.bundle.Tarball(reason="it contains more than an image")
