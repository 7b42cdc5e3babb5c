"""Files that are whole or not there: data, then a record about it, then the record's length, in one file that a rename
puts in its place. So no kill can part an object's bytes from its ETag.
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

from nova import decoding

LENGTH_BYTES = 8
LONGEST_RECORD = 65536
YOUNG_S = 60.0  # between a file's making and its lock

Record = TypeVar("Record", bound=msgspec.Struct)


class RecordDamaged(Exception):
    """A file has no record: it is none of ours, or the disk lost some of it."""


class NewFile:
    """A file that is being written. It is locked as long as its writer lives, so that a sweep knows it from one that a
    kill has left behind."""

    def __init__(self, folder: Path) -> None:
        descriptor, name = tempfile.mkstemp(prefix="new.", dir=folder)
        self.path = Path(name)
        self._stream = os.fdopen(descriptor, "wb")
        fcntl.flock(descriptor, fcntl.LOCK_EX)

    def write(self, piece: bytes) -> None:
        """OSError, e.g. when the disk is full."""
        self._stream.write(piece)

    def seal(self, record: msgspec.Struct) -> None:
        """All data is written: add the record, and have it on the disk."""
        encoded = msgspec.json.encode(record)
        self._stream.write(encoded + len(encoded).to_bytes(LENGTH_BYTES, "big"))
        self._stream.flush()
        os.fsync(self._stream.fileno())

    def move(self, target: Path) -> None:
        """To its place, for good. FileNotFoundError when the folder there is gone."""
        os.replace(self.path, target)
        sync_folder(target.parent)

    def close(self) -> None:
        """Whatever was not moved goes."""
        with contextlib.suppress(FileNotFoundError):
            self.path.unlink()
        with contextlib.suppress(OSError):  # of what could not be flushed and is gone now
            self._stream.close()


def sync_folder(folder: Path) -> None:
    """Have its names on the disk."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def read_record(stream: BinaryIO, kind: type[Record]) -> Record:
    """The record of an open file. RecordDamaged."""
    size = os.fstat(stream.fileno()).st_size
    try:
        stream.seek(size - LENGTH_BYTES)
        length = int.from_bytes(stream.read(LENGTH_BYTES), "big")
        if length > min(LONGEST_RECORD, size - LENGTH_BYTES):
            raise ValueError(length)
        stream.seek(size - LENGTH_BYTES - length)
        return decoding.from_json(stream.read(length), kind)
    except (OSError, ValueError, msgspec.MsgspecError) as error:
        raise RecordDamaged(str(stream.name)) from error


def new_folder(parent: Path) -> Path:
    """One that is filled before it is moved to its place."""
    return Path(tempfile.mkdtemp(prefix="new.", dir=parent))


def discard(folder: Path, trash: Path) -> None:
    """Remove a folder: it is gone from its place at once, and its content soon. FileNotFoundError."""
    gone = new_folder(trash)
    try:
        os.replace(folder, gone)
        sync_folder(folder.parent)
    finally:
        shutil.rmtree(gone, ignore_errors=True)


def sweep(folder: Path, young_s: float = YOUNG_S) -> int:
    """Remove what writers left behind that were killed; how many files and folders that were."""
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
