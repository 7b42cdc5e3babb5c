"""Coalescing of calls: at most one call to a host at a time; later changes are combined into the next call.

A slow or hanging host does not delay calls to others, and a burst of a hundred changes costs a host two calls. A call
carries a state, not a difference: the next call has the state that is committed when it begins.
"""

from __future__ import annotations

import contextvars
import logging
import threading
from collections.abc import Callable
from typing import Generic, TypeVar

from nova import concurrency, failures

LOG = logging.getLogger(__name__)


class Batch:
    """Changes combined into one call. ``done`` is set when the call has ended, successfully or not."""

    def __init__(self) -> None:
        self.done = threading.Event()


B = TypeVar("B", bound=Batch)


class Coalescer(Generic[B]):
    """Queue of calls by key. ``make`` returns an empty batch; ``call(key, batch)`` makes the call, in a thread of its
    own. Its errors are logged, and end only its own batch. ``name``: the thread's name."""

    def __init__(self, make: Callable[[], B], call: Callable[[str, B], None], name: str) -> None:
        self._make, self._call, self._name = make, call, name
        self._lock = threading.Lock()
        self._next: dict[str, B] = {}
        self._under_way: set[str] = set()

    def join(self, key: str, put: Callable[[B], None] = lambda batch: None) -> tuple[B, bool]:
        """Add to the batch of the next call with ``put``. Returns the batch, and True if its call begins
        immediately."""
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
        """True if another call follows the running one."""
        with self._lock:
            return key in self._next

    def _lead(self, key: str) -> None:
        while True:
            with self._lock:
                batch = self._next.pop(key, None)
                if batch is None:
                    self._under_way.discard(key)
                    return
            # the next batch must be sent regardless of this error
            with failures.keep_running(LOG, "%s of %s failed", self._name, key):
                self._call(key, batch)
            batch.done.set()
