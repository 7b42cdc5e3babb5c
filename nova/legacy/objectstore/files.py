"""Atomic files: data, then a metadata record, then the record's length, in one file that is renamed into place.

A kill can therefore never separate an object's bytes from its ETag.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, TypeVar

import msgspec

from nova import decoding, failures

LENGTH_BYTES = 8
LONGEST_RECORD = 65536
YOUNG_S = 60.0  # maximum time between the creation of a file and its lock

Record = TypeVar("Record", bound=msgspec.Struct)


class RecordDamaged(Exception):
    """A file has no valid record: the store did not write it, or the disk lost a part of it."""


class NewFile:
    """A file that is being written. It is locked while its writer lives, so that a sweep can distinguish it from the
    file of a killed writer."""

    def __init__(self, folder: Path) -> None:
        descriptor, name = tempfile.mkstemp(prefix="new.", dir=folder)
        self.path = Path(name)
        self._stream = os.fdopen(descriptor, "wb")
        fcntl.flock(descriptor, fcntl.LOCK_EX)

    def write(self, piece: bytes) -> None:
        """Append data. Raises OSError, for example if the disk is full."""
        self._stream.write(piece)

    def seal(self, record: msgspec.Struct) -> None:
        """Append the record after all data, and sync the file to the disk."""
        encoded = msgspec.json.encode(record)
        self._stream.write(encoded + len(encoded).to_bytes(LENGTH_BYTES, "big"))
        self._stream.flush()
        os.fsync(self._stream.fileno())

    def move(self, target: Path) -> None:
        """Rename the file to its target, durably. Raises FileNotFoundError if the target directory does not exist."""
        os.replace(self.path, target)
        sync_folder(target.parent)

    def close(self) -> None:
        """Close the file, and delete it unless it was moved."""
        with contextlib.suppress(FileNotFoundError):
            self.path.unlink()
        with contextlib.suppress(OSError):  # unflushed data of the deleted file
            self._stream.close()


def sync_folder(folder: Path) -> None:
    """Sync a directory's entries to the disk."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def read_record(stream: BinaryIO, kind: type[Record]) -> Record:
    """Read the record of an open file. Raises RecordDamaged."""
    size = os.fstat(stream.fileno()).st_size
    with failures.translated((OSError, ValueError, msgspec.MsgspecError), lambda _: RecordDamaged(str(stream.name))):
        stream.seek(size - LENGTH_BYTES)
        length = int.from_bytes(stream.read(LENGTH_BYTES), "big")
        if length > min(LONGEST_RECORD, size - LENGTH_BYTES):
            raise ValueError(length)
        stream.seek(size - LENGTH_BYTES - length)
        return decoding.from_json(stream.read(length), kind)


def new_folder(parent: Path) -> Path:
    """Create a temporary directory, to be filled and then renamed into place."""
    return Path(tempfile.mkdtemp(prefix="new.", dir=parent))


def discard(folder: Path, trash: Path) -> None:
    """Remove a directory: a rename removes it from its place atomically, then its content is deleted.

    Raises FileNotFoundError.
    """
    gone = new_folder(trash)
    try:
        os.replace(folder, gone)
        sync_folder(folder.parent)
    finally:
        shutil.rmtree(gone, ignore_errors=True)


def sweep(folder: Path, young_s: float = YOUNG_S) -> int:
    """Remove the files and directories of killed writers; return their number."""
    count = 0
    for path in _left(folder, time.time() - young_s):
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
            count += 1
            continue
        with contextlib.suppress(BlockingIOError, FileNotFoundError), path.open("rb") as stream:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
            path.unlink()
            count += 1
    return count


def _left(folder: Path, before: float) -> Iterator[Path]:
    for path in folder.glob("new.*"):
        with contextlib.suppress(FileNotFoundError):
            if path.lstat().st_mtime <= before:
                yield path
