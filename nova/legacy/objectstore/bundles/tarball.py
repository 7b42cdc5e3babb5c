"""The tarball of a bundle: its first file is the image. Its names are never used, and nothing else is taken from it."""

from __future__ import annotations

import hashlib
import tarfile
import zlib
from collections.abc import Sequence
from pathlib import Path, PurePosixPath
from typing import BinaryIO, NamedTuple, cast

from nova import errors
from nova.legacy.objectstore.bundles.streams import PIECE, RoomFile, pump
from nova.legacy.objectstore.room import DiskRoom

READ = 2 ** 18
HEADERS = 4 * 2 ** 20  # bytes of a tarball that are not the image: tarfile keeps some of them in memory
MOST_MEMBERS = 1000
GZIP_BITS = 16 + zlib.MAX_WBITS


class ExpectedImage(NamedTuple):
    """What the image must be like. ``limit``: bytes that it may have; ``size``: those it must have, where that is
    known; ``sha1``: of the tarball, or empty (euca-bundle-image takes it after tar and before gzip)."""

    limit: int
    size: int | None = None
    sha1: str = ""


class GunzippedStream:
    """What gzip packed, in the bounds of what may still come. A file's ``read`` for tarfile."""

    def __init__(self, source: BinaryIO) -> None:
        self._source, self._inflate = source, zlib.decompressobj(GZIP_BITS)
        self._packed, self._budget, self._refusal = b"", 0, ""
        self.sha1 = hashlib.sha1(usedforsecurity=False)

    def allow(self, budget: int, refusal: str) -> None:
        """So many bytes may come from now on; ``refusal`` says what more of them would be."""
        self._budget, self._refusal = budget, refusal

    def read(self, size: int) -> bytes:
        """At most ``size`` bytes; none at the end. bundle.Tarball: more come than are allowed, or it is cut short."""
        data = b""
        while not data:
            if self._inflate.eof and not self._next_member():
                return b""
            if not self._packed:
                self._packed = self._source.read(READ)
                if not self._packed:
                    raise errors.bundle.Tarball(reason="its gzip is cut short")
            try:
                data = self._inflate.decompress(self._packed, size)
            except zlib.error as error:
                raise errors.bundle.Tarball(reason=f"its gzip is damaged ({error})") from None
            self._packed = self._inflate.unconsumed_tail
        self._budget -= len(data)
        if self._budget < 0:
            raise errors.bundle.Tarball(reason=self._refusal)
        self.sha1.update(data)
        return data

    def _next_member(self) -> bool:
        """gzip's files may follow each other, with zeros between and behind them."""
        rest = self._inflate.unused_data.lstrip(b"\0")
        while not rest:
            piece = self._source.read(READ)
            if not piece:
                return False
            rest = piece.lstrip(b"\0")
        self._packed, self._inflate = rest, zlib.decompressobj(GZIP_BITS)
        return True


def unpack(source: Path, target: Path, expected: ExpectedImage, room: DiskRoom) -> None:
    """Write the image of the packed tarball to the new file. bundle.Tarball, bundle.Digest, bundle.WrongLength,
    bundle.TooLong; bundle.NoRoom before anything of it is written, or where others have filled the disk meanwhile."""
    with source.open("rb") as packed:
        stream = GunzippedStream(packed)
        try:
            _extract(stream, target, expected, room)
        except (errors.NovaError, OSError):
            raise
        # whatever tarfile's reading of hostile numbers ends in
        except (tarfile.TarError, ValueError, ArithmeticError, LookupError, RecursionError, TypeError) as error:
            raise errors.bundle.Tarball(reason=f"it is damaged ({type(error).__name__})") from None
    if expected.sha1 not in ("", stream.sha1.hexdigest()):
        raise errors.bundle.Digest()


def _extract(stream: GunzippedStream, target: Path, expected: ExpectedImage, room: DiskRoom) -> None:
    stream.allow(HEADERS, "its headers are too long")
    with tarfile.open(fileobj=stream, mode="r|", bufsize=READ) as tar:  # type: ignore[call-overload]
        image = _first_file(tar)
        _check_size(image, expected)
        stream.allow(image.size + HEADERS, "its image is longer than it says")
        with RoomFile(target, room, image.size) as out:
            _copy(tar, image, out)
        stream.allow(HEADERS, "more than an image is in it")
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
    raise errors.bundle.Tarball(reason="no file is in it")


def _check(member: tarfile.TarInfo) -> None:
    """Names are not used, but who sends such a one means no good."""
    path = PurePosixPath(member.name)
    if path.is_absolute() or ".." in path.parts or "\0" in member.name:
        raise errors.bundle.Tarball(reason="a name in it leads out of its folder")
    if not (member.isreg() or member.isdir()):
        raise errors.bundle.Tarball(reason="a link, a device or the like is in it")


def _check_size(image: tarfile.TarInfo, expected: ExpectedImage) -> None:
    if image.size < 0:
        raise errors.bundle.Tarball(reason="its image has a size below zero")
    if image.size > expected.limit:
        raise errors.bundle.TooLong(what="image", limit=expected.limit)
    if expected.size not in (None, image.size):
        raise errors.bundle.WrongLength(what="image", found=image.size, wanted=expected.size)
    end, entries = 0, cast("Sequence[tuple[int, int]]", image.sparse or ())
    for offset, size in entries:
        if not size:  # of places in the map that are not used
            continue
        if size < 0 or offset < end or offset + size > image.size:
            raise errors.bundle.Tarball(reason="the map of its sparse image is wrong")
        end = offset + size


def _copy(tar: tarfile.TarFile, image: tarfile.TarInfo, out: RoomFile) -> None:
    data = tar.extractfile(image)
    if data is None:
        raise errors.bundle.Tarball(reason="no file is in it")

    def turn() -> int:
        piece = data.read(PIECE)
        out.write(piece)
        return len(piece)
    pump(turn)
    if out.tell() != image.size:
        raise errors.bundle.Tarball(reason="its image is cut short")


def _check_rest(tar: tarfile.TarFile) -> None:
    for _ in range(MOST_MEMBERS):
        member = tar.next()
        if member is None:
            return
        _check(member)
    raise errors.bundle.Tarball(reason="more than an image is in it")
