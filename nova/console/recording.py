"""Recording of sessions for support: the guest's output, in a file that only its owner can read."""

from __future__ import annotations

import contextlib
import logging
import os
import time
from collections.abc import Iterator
from typing import cast

from nova.console.stream import StreamEnd

LOG = logging.getLogger(__name__)

MAX_BYTES = 256 << 20  # so that a guest that shows a film cannot fill the disk

class Recorded:
    """A console's side of a relay (:class:`nova.console.stream.StreamEnd`) that also writes every byte read to a file.

    All else is delegated to that side. A full disk ends the recording, not the session.
    """

    def __init__(self, back: StreamEnd, number: int, room: int = MAX_BYTES) -> None:
        self._back, self._number, self._room = back, number, room

    def __getattr__(self, name: str) -> object:
        return getattr(self._back, name)

    def read(self, *limit: int) -> bytes | None:
        """Read from the console's side, and record the result."""
        data = self._back.read(*limit)
        self._keep(data or b"")
        return data

    def read_into(self, room: memoryview) -> int | None:
        """Read from the console's side into ``room``, and record the result."""
        count = self._back.read_into(room)
        self._keep(room[:count or 0])
        return count

    def _keep(self, data: bytes | memoryview) -> None:
        if not data or self._room <= 0:
            return
        try:
            self._room -= os.write(self._number, data[:self._room])
        except OSError as error:
            LOG.warning("Stopped recording a session: %s", error.strerror)
            self._room = 0


@contextlib.contextmanager
def recorded(back: StreamEnd, prefix: str, name: str) -> Iterator[StreamEnd]:
    """Yield ``back``, recorded in ``<prefix>.<name>.<time>.<number>``; unrecorded if the file cannot be created."""
    try:
        number = _new_file(f"{prefix}.{name}.{time.strftime('%Y%m%dT%H%M%S', time.gmtime())}")
    except OSError as error:
        LOG.warning("Cannot record a session: %s: %s", error.filename, error.strerror)
        yield back
        return
    try:
        yield cast(StreamEnd, Recorded(back, number))  # which delegates to ``back``
    finally:
        os.close(number)


def _new_file(stem: str) -> int:
    for number in range(100):
        with contextlib.suppress(FileExistsError):
            return os.open(f"{stem}.{number}", os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    raise FileExistsError(17, "too many records of one second", stem)
