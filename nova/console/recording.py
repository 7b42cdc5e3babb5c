"""A session's record for support: what the guest sent, in a file that its owner alone may read."""

from __future__ import annotations

import contextlib
import logging
import os
import time
from collections.abc import Iterator

from nova.model.base import Json

LOG = logging.getLogger(__name__)

MAX_BYTES = 256 << 20  # a guest that shows a film fills no disk

class Recorded:
    """A console's side of a relay (:class:`nova.console.stream.StreamEnd`). Every byte read goes to a file, too.

    All else is the side's own. A full disk ends the record, not the session.
    """

    def __init__(self, back: Json, number: int, room: int = MAX_BYTES) -> None:
        self._back, self._number, self._room = back, number, room

    def __getattr__(self, name: str) -> object:
        return getattr(self._back, name)

    def read(self, *limit: int) -> bytes | None:
        """As the side's own; what it returns is kept in the file, too."""
        data: bytes | None = self._back.read(*limit)
        self._keep(data or b"")
        return data

    def read_into(self, room: memoryview) -> int | None:
        """As the side's own; what it puts into ``room`` is kept in the file, too."""
        count: int | None = self._back.read_into(room)
        self._keep(room[:count or 0])
        return count

    def _keep(self, data: bytes | memoryview) -> None:
        if not data or self._room <= 0:
            return
        try:
            self._room -= os.write(self._number, data[:self._room])
        except OSError as error:
            LOG.warning("A session is no longer recorded: %s", error.strerror)
            self._room = 0


@contextlib.contextmanager
def recorded(back: object, prefix: str, name: str) -> Iterator[object]:
    """``back``, recorded in ``<prefix>.<name>.<time>.<number>``; as it is when no file can be made."""
    try:
        number = _new_file(f"{prefix}.{name}.{time.strftime('%Y%m%dT%H%M%S', time.gmtime())}")
    except OSError as error:
        LOG.warning("A session is not recorded: %s: %s", error.filename, error.strerror)
        yield back
        return
    try:
        yield Recorded(back, number)
    finally:
        os.close(number)


def _new_file(stem: str) -> int:
    for number in range(100):
        with contextlib.suppress(FileExistsError):
            return os.open(f"{stem}.{number}", os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    raise FileExistsError(17, "too many records of one second", stem)
