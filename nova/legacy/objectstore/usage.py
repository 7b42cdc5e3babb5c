"""How much each owner has in the store: a count of its own, so that a write does not look at all files.

``usage/HASH`` (of the owner) is the owner's lock and, between changes, has the count. Who changes something empties
the file first and writes the new count last. So a kill in between leaves it empty, and the next one counts the files.
What a kill cannot explain (a power cut, a backup played back, files that an operator removed) ends with the next
:meth:`UsageCounts.forget`, which belongs to each start and to upkeep.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

import msgspec

from nova import decoding, errors
from nova.legacy.objectstore.names import file_name
from nova.privileged.files import locked

LOG = logging.getLogger(__name__)

FORGET_S = 5.0  # for which a lock is waited for
OBJECTS = "objects"  # the name of each folder of objects


class Usage(NamedTuple):
    """``size``: bytes of files. Parts of uploads are no objects, and have a size."""

    objects: int = 0
    size: int = 0

    def plus(self, other: Usage) -> Usage:
        """The sum."""
        return Usage(self.objects + other.objects, self.size + other.size)

    def minus(self, other: Usage) -> Usage:
        """The difference; either part may be below zero."""
        return Usage(self.objects - other.objects, self.size - other.size)


def usage_of(path: Path, folder: str = "") -> Usage:
    """Of a file; nothing where there is none. ``folder``: the name of the one that it goes to, or it is in that."""
    try:
        return Usage(int((folder or path.parent.name) == OBJECTS), path.stat().st_size)
    except FileNotFoundError:
        return Usage()


def usage_in(paths: Iterable[Path]) -> Usage:
    """Of files; those that go meanwhile are none."""
    found = Usage()
    for path in paths:
        found = found.plus(usage_of(path))
    return found


class UsageChange:
    """What the holder of an owner's lock knows and does."""

    def __init__(self, path: Path, count: Callable[[], Usage]) -> None:
        self._path, self._count = path, count
        self._known: Usage | None = None
        self._has_begun = False

    def usage(self) -> Usage:
        """As it is now; counts the files where the count is not known. OSError."""
        if self._known is None:
            self._known = self._read()
        if self._known is None:
            self._known = self._count()
            self._write(self._known)
        return self._known

    def begin(self, difference: Usage) -> None:
        """Files are about to change by this. OSError."""
        known = self._known or self._read()
        self._path.write_bytes(b"")
        self._has_begun, self._known = True, None if known is None else known.plus(difference)

    def end(self) -> None:
        """Files have changed as was said. A count that cannot be right is left out."""
        if self._has_begun and self._known is not None and min(self._known) >= 0:
            self._write(self._known)

    def _read(self) -> Usage | None:
        try:
            return decoding.from_json(self._path.read_bytes(), Usage)
        except msgspec.MsgspecError:  # empty, or cut by a kill
            return None

    def _write(self, usage: Usage) -> None:
        """Where the disk is full, the files are counted the next time."""
        try:
            self._path.write_bytes(msgspec.json.encode(usage))
        except OSError as error:
            LOG.warning("The count of a project's objects cannot be written to %s: %s", self._path, error)


class UsageCounts:
    """Of all owners, in ``folder``. ``files_of``: an owner's files. Every method may be called by several threads and
    processes at once; each waits for its owner's lock alone."""

    def __init__(self, folder: Path, files_of: Callable[[str], Iterable[Path]]) -> None:
        self._folder, self._files_of = folder, files_of
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)

    @contextlib.contextmanager
    def changing(self, owner: str) -> Iterator[UsageChange]:
        """Hold the owner's lock for what must be true until files have changed. host.LockBusy when others hold it for
        a minute."""
        path = self._folder / file_name(owner)
        with locked(path):
            change = UsageChange(path, lambda: usage_in(self._files_of(owner)))
            yield change
            change.end()

    def forget(self) -> None:
        """Have each owner's files counted at the next write; of those whose lock is held for long, the next time."""
        for path in self._folder.iterdir():
            with contextlib.suppress(errors.host.LockBusy), locked(path, FORGET_S):
                path.write_bytes(b"")
