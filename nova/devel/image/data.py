"""Data of FakeGlance's images: in memory, or as files in a directory chosen by the caller."""

from __future__ import annotations

import contextlib
import hashlib
import io
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import BinaryIO, NamedTuple

PART = 65536  # bytes per read


class DataFacts(NamedTuple):
    """Glance's facts about data: bytes, MD5 and SHA-512 in hex."""

    size: int
    checksum: str
    os_hash_value: str


class DataFolder:
    """Store of image data. ``folder`` None: in memory. Data are written to a temporary name first, so that they are
    never incomplete."""

    def __init__(self, folder: Path | None = None) -> None:
        self.folder = folder
        self.in_memory: dict[str, bytes] = {}

    def keep(self, image_id: str, parts: Iterable[bytes]) -> DataFacts:
        """Read all parts and store them. Errors of ``parts`` are passed on, and then no data are stored."""
        md5, sha512, size = hashlib.md5(usedforsecurity=False), hashlib.sha512(), 0
        with self._written(image_id) as out:
            for part in parts:
                md5.update(part)
                sha512.update(part)
                size += out.write(part)
        return DataFacts(size, md5.hexdigest(), sha512.hexdigest())

    def open(self, image_id: str) -> BinaryIO:
        """Open the data; they stay readable if the image is deleted meanwhile."""
        if self.folder is None:
            return io.BytesIO(self.in_memory[image_id])
        return (self.folder / image_id).open("rb")

    def forget(self, image_id: str) -> None:
        """Delete the data, if there are any."""
        self.in_memory.pop(image_id, None)
        if self.folder is not None:
            (self.folder / image_id).unlink(missing_ok=True)

    @contextlib.contextmanager
    def _written(self, image_id: str) -> Iterator[BinaryIO]:
        if self.folder is None:
            memory = io.BytesIO()
            yield memory
            self.in_memory[image_id] = memory.getvalue()
            return
        coming = self.folder / f"{image_id}.part"
        try:
            with open(os.open(coming, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as out:
                yield out
            coming.rename(self.folder / image_id)
        finally:
            coming.unlink(missing_ok=True)


class DataParts:
    """Iterator over the parts of a file from its present position, at most ``left`` bytes. WSGI servers close it."""

    def __init__(self, source: BinaryIO, left: int) -> None:
        self.source, self.left = source, left

    def __iter__(self) -> Iterator[bytes]:
        return self

    def __next__(self) -> bytes:
        part = self.source.read(min(PART, self.left))
        if not part:
            raise StopIteration
        self.left -= len(part)
        return part

    def app_iter_range(self, start: int, stop: int) -> DataParts:
        """Return the bytes of a range, for webob."""
        self.source.seek(start)
        return DataParts(self.source, stop - start)

    def close(self) -> None:
        """Close the file."""
        self.source.close()
