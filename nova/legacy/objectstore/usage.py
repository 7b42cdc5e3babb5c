"""Usage counters per owner, so that a write need not count all files.

``usage/HASH`` (of the owner) is the owner's lock file and holds the count between changes. A writer truncates the file
before its change and writes the new count afterwards. If the process is killed in between, the file is empty, and the
next writer counts the files. Other discrepancies (a power failure, a restored backup, files that an operator removed)
last until the next :meth:`UsageCounts.forget`, which runs at each start and in periodic maintenance.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

import msgspec

from nova import decoding, errors, failures
from nova.legacy.objectstore.names import file_name
from nova.privileged.files import locked

LOG = logging.getLogger(__name__)

FORGET_S = 5.0  # timeout of waiting for a lock
OBJECTS = "objects"  # name of each directory of objects


class Usage(NamedTuple):
    """The number of objects and their total size in bytes. Parts of uploads count only for the size."""

    objects: int = 0
    size: int = 0

    def plus(self, other: Usage) -> Usage:
        """Return the sum."""
        return Usage(self.objects + other.objects, self.size + other.size)

    def minus(self, other: Usage) -> Usage:
        """Return the difference; either field may be negative."""
        return Usage(self.objects - other.objects, self.size - other.size)


def usage_of(path: Path, folder: str = "") -> Usage:
    """Return the usage of a file, zero if it does not exist. ``folder``: name of its target directory, by default its
    current one."""
    with contextlib.suppress(FileNotFoundError):
        return Usage(int((folder or path.parent.name) == OBJECTS), path.stat().st_size)
    return Usage()


def usage_in(paths: Iterable[Path]) -> Usage:
    """Return the total usage of files; files deleted meanwhile count as zero."""
    found = Usage()
    for path in paths:
        found = found.plus(usage_of(path))
    return found


class UsageChange:
    """A change of an owner's usage, made under the owner's lock."""

    def __init__(self, path: Path, count: Callable[[], Usage]) -> None:
        self._path, self._count = path, count
        self._known: Usage | None = None
        self._has_begun = False

    def usage(self) -> Usage:
        """Return the current usage; counts the files if the count is unknown. Raises OSError."""
        if self._known is None:
            self._known = self._read()
        if self._known is None:
            self._known = self._count()
            self._write(self._known)
        return self._known

    def begin(self, difference: Usage) -> None:
        """Mark the count as unknown before files change by ``difference``. Raises OSError."""
        known = self._known or self._read()
        self._path.write_bytes(b"")
        self._has_begun, self._known = True, None if known is None else known.plus(difference)

    def end(self) -> None:
        """Write the new count after the files have changed. A negative count is not written."""
        if self._has_begun and self._known is not None and min(self._known) >= 0:
            self._write(self._known)

    def _read(self) -> Usage | None:
        with contextlib.suppress(msgspec.MsgspecError):  # empty, or truncated by a kill
            return decoding.from_json(self._path.read_bytes(), Usage)
        return None

    def _write(self, usage: Usage) -> None:
        """Write the count. If the disk is full, the next writer counts the files."""
        with failures.best_effort(LOG, "Cannot write the object count of a project to %s; the next write counts the "
                "files: %s", self._path, on=OSError):
            self._path.write_bytes(msgspec.json.encode(usage))


class UsageCounts:
    """The usage counters of all owners, in ``folder``. ``files_of``: returns an owner's files.

    Safe for concurrent use by threads and processes; each call waits only for its owner's lock.
    """

    def __init__(self, folder: Path, files_of: Callable[[str], Iterable[Path]]) -> None:
        self._folder, self._files_of = folder, files_of
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)

    @contextlib.contextmanager
    def changing(self, owner: str) -> Iterator[UsageChange]:
        """Hold the owner's lock while checking preconditions and changing files.

        Raises host.LockBusy if others hold the lock for a minute.
        """
        path = self._folder / file_name(owner)
        with locked(path):
            change = UsageChange(path, lambda: usage_in(self._files_of(owner)))
            yield change
            change.end()

    def forget(self) -> None:
        """Discard all counts, so that the next write counts the files. Owners whose lock stays held are skipped."""
        for path in self._folder.iterdir():
            with contextlib.suppress(errors.host.LockBusy), locked(path, FORGET_S):
                path.write_bytes(b"")
