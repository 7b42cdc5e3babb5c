"""What the volume service says of volumes that it writes an image over (event ``volume-reimaged``).

It is told to one process of many, and may be lost: who waits also asks for the volume's status.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator

FAILED = "failed"


class ReimageNews:
    """Statuses of events, by the volume; of those volumes alone that somebody here waits for."""

    def __init__(self) -> None:
        self._said: dict[str, str] = {}
        self._changed = threading.Condition()

    @contextlib.contextmanager
    def expected(self, volume_id: str) -> Iterator[None]:
        """While it lasts, what is said of the volume is kept."""
        with self._changed:
            self._said[volume_id] = ""
        try:
            yield
        finally:
            with self._changed:
                self._said.pop(volume_id, None)

    def tell(self, volume_id: str, status: str) -> None:
        """An event came: ``completed`` or ``failed``."""
        with self._changed:
            if volume_id in self._said:
                self._said[volume_id] = status
                self._changed.notify_all()

    def wait(self, volume_id: str, seconds: float) -> str:
        """What is said of an expected volume within so long, once; empty: nothing."""
        with self._changed:
            self._changed.wait_for(lambda: bool(self._said[volume_id]), seconds)
            said, self._said[volume_id] = self._said[volume_id], ""
            return said


__all__ = ["FAILED", "ReimageNews"]
