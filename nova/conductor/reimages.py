"""Events of the volume service about volumes that it writes an image to (``volume-reimaged``).

An event reaches only one of many processes, and may be lost: waiting code also polls the volume's status.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator

FAILED = "failed"


class ReimageEvents:
    """Statuses from events, by volume; only of volumes that this process waits for."""

    def __init__(self) -> None:
        self._said: dict[str, str] = {}
        self._changed = threading.Condition()

    @contextlib.contextmanager
    def expected(self, volume_id: str) -> Iterator[None]:
        """Keep events about the volume while the context lasts."""
        with self._changed:
            self._said[volume_id] = ""
        try:
            yield
        finally:
            with self._changed:
                self._said.pop(volume_id, None)

    def tell(self, volume_id: str, status: str) -> None:
        """Record an event with status ``completed`` or ``failed``."""
        with self._changed:
            if volume_id in self._said:
                self._said[volume_id] = status
                self._changed.notify_all()

    def wait(self, volume_id: str, seconds: float) -> str:
        """Return the status of the next event about an expected volume, once; "" after the timeout."""
        with self._changed:
            self._changed.wait_for(lambda: bool(self._said[volume_id]), seconds)
            said, self._said[volume_id] = self._said[volume_id], ""
            return said


__all__ = ["FAILED", "ReimageEvents"]
