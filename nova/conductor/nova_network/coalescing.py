"""At most one call a host at a time, and what comes meanwhile in one call after it.

A host that is slow, or hangs, keeps nobody from telling the others; and a burst of a hundred changes costs a host two
calls, not a hundred. What is told is a state, not a difference: the next call has what is committed when it begins.
"""

from __future__ import annotations

import contextvars
import logging
import threading
from collections.abc import Callable
from typing import Generic, TypeVar

from nova import concurrency

LOG = logging.getLogger(__name__)


class Batch:
    """What came together for one call. ``done`` is set when the call has ended, well or not."""

    def __init__(self) -> None:
        self.done = threading.Event()


B = TypeVar("B", bound=Batch)


class Coalescer(Generic[B]):
    """``make`` gives an empty batch; ``call(key, batch)`` makes the call, in a thread of its own. What it raises is
    logged, and ends nothing but its own batch. ``name``: the thread's."""

    def __init__(self, make: Callable[[], B], call: Callable[[str, B], None], name: str) -> None:
        self._make, self._call, self._name = make, call, name
        self._lock = threading.Lock()
        self._next: dict[str, B] = {}
        self._under_way: set[str] = set()

    def join(self, key: str, put: Callable[[B], None] = lambda batch: None) -> tuple[B, bool]:
        """The batch whose call begins after this, ``put`` into it; and whether nothing else is before it."""
        with self._lock:
            batch = self._next.get(key)
            if batch is None:
                batch = self._next[key] = self._make()
            put(batch)
            begins = key not in self._under_way
            if begins:
                self._under_way.add(key)
                concurrency.spawn(contextvars.copy_context().run, self._lead, key, name=self._name)
        return batch, begins

    def waiting(self, key: str) -> bool:
        """Whether a call is to come when the one before it has ended."""
        with self._lock:
            return key in self._next

    def _lead(self, key: str) -> None:
        while True:
            with self._lock:
                batch = self._next.pop(key, None)
                if batch is None:
                    self._under_way.discard(key)
                    return
            try:
                self._call(key, batch)
            except Exception:  # the next batch must go whatever happened to this one
                LOG.exception("%s of %s failed", self._name, key)
            finally:
                batch.done.set()
