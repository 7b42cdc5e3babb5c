"""The first steps from a bundle to its image, joining and decrypting. Each streams from file to file.

CPU-bound work runs in another thread, one piece at a time, if threads are green.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import NamedTuple

from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.hazmat.primitives.padding import PKCS7

from nova import concurrency, errors, failures
from nova.legacy.objectstore.bundles.manifest import BundleLocation, BundleManifest, BundlePart
from nova.legacy.objectstore.disk_space import DiskSpace, SpaceWatch
from nova.legacy.objectstore.files import RecordDamaged
from nova.legacy.objectstore.s3_errors import S3Error
from nova.legacy.objectstore.store import ObjectStore

PIECE = 2 ** 20
BLOCK_BITS = 128
GZIP = b"\x1f\x8b\x08"  # the first bytes of a gzip file (RFC 1952)


class BundleKey(NamedTuple):
    """The secret key and IV of AES-128-CBC, 16 bytes each."""

    key: bytes
    iv: bytes

    def __repr__(self) -> str:
        return "<BundleKey>"


def pump(turn: Callable[[], int]) -> None:
    """Repeat ``turn`` until it moves no bytes. Between the calls other threads run, and the work may be canceled."""
    while concurrency.run_in_thread(turn):
        concurrency.check_cancelled()


class BoundedFile:
    """A new file whose writes check the free space. ``size``: the expected size in bytes, if known, which must be free
    at the start. Raises bundle.NoRoom, OSError."""

    def __init__(self, path: Path, room: DiskSpace, size: int = 0) -> None:
        need(room, size)
        self._room, self._watch = room, SpaceWatch(room)
        self._file = path.open("xb")

    def write(self, piece: bytes) -> None:
        """Append data. Raises bundle.NoRoom, OSError."""
        if self._watch.lacks(len(piece)):
            raise errors.bundle.NoRoom(size=len(piece))
        self._file.write(piece)

    def tell(self) -> int:
        """Return the number of bytes written."""
        return self._file.tell()

    def __enter__(self) -> BoundedFile:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 where: TracebackType | None) -> None:
        self._file.close()


def need(room: DiskSpace, size: int) -> None:
    """Check that the disk has space for ``size`` more bytes. Raises bundle.NoRoom."""
    if room.lacks(size):
        raise errors.bundle.NoRoom(size=size)


def read_key(key: str, iv: str) -> BundleKey:
    """Parse the hex digits that nova-cert decrypted. Raises bundle.KeyRefused, whose message never has the key."""
    if not all(re.fullmatch("[0-9a-fA-F]{32}", one.strip()) for one in (key, iv)):
        raise errors.bundle.KeyRefused(reason="key and IV are not 32 hex digits each")
    return BundleKey(bytes.fromhex(key.strip()), bytes.fromhex(iv.strip()))


class Parts(NamedTuple):
    """The parts of a bundle in the object store."""

    store: ObjectStore
    owner: str
    location: BundleLocation
    manifest: BundleManifest

    def join(self, target: Path, limit: int, room: DiskSpace) -> None:
        """Concatenate the parts, and verify the digest of each.

        Raises bundle.PartMissing, bundle.PartDamaged, bundle.TooLong beyond ``limit`` bytes, bundle.WrongLength,
        bundle.NoRoom.
        """
        with BoundedFile(target, room, min(self.manifest.bundled_size or 0, limit)) as out:
            for part in self.manifest.parts:
                self._add(part, out, limit)
            size = out.tell()
        if self.manifest.bundled_size not in (None, size):
            raise errors.bundle.WrongLength(what="bundle", found=size, wanted=self.manifest.bundled_size)

    def _add(self, part: BundlePart, out: BoundedFile, limit: int) -> None:
        digest = hashlib.sha1(usedforsecurity=False)
        with failures.replaced((S3Error, RecordDamaged), lambda _: errors.bundle.PartMissing(part=part.filename)):
            opened = self.store.get(self.owner, self.location.bucket, self.location.beside(part.filename))
        if out.tell() + opened.record.size > limit:
            opened.close()
            raise errors.bundle.TooLong(what="bundle", limit=limit)
        pieces = opened.pieces()

        def turn() -> int:
            piece = next(pieces, b"")
            digest.update(piece)
            out.write(piece)
            return len(piece)
        try:
            with failures.replaced(RecordDamaged, lambda _: errors.bundle.PartDamaged(part=part.filename)):
                pump(turn)
        finally:
            opened.close()
        if part.sha1 not in ("", digest.hexdigest()):
            raise errors.bundle.PartDamaged(part=part.filename)


def decrypt(source: Path, target: Path, key: BundleKey, room: DiskSpace) -> None:
    """Decrypt the bundle to a gzip file.

    Raises bundle.Cipher if it has an incomplete block, no padding, or is not gzip afterwards, most likely because the
    key is wrong; bundle.NoRoom.
    """
    decryptor = Cipher(algorithms.AES(key.key), modes.CBC(key.iv)).decryptor()
    unpadder = PKCS7(BLOCK_BITS).unpadder()
    with source.open("rb") as encrypted, BoundedFile(target, room, source.stat().st_size) as out:
        def turn() -> int:
            piece = encrypted.read(PIECE)
            out.write(unpadder.update(decryptor.update(piece)) if piece else b"")
            return len(piece)
        pump(turn)
        with failures.replaced(ValueError,
                lambda _: errors.bundle.Cipher(reason="they do not end with a whole, padded block")):
            out.write(unpadder.update(decryptor.finalize()) + unpadder.finalize())
    with target.open("rb") as found:
        if found.read(len(GZIP)) != GZIP:
            raise errors.bundle.Cipher(reason="the decrypted data is not gzip")
