"""A cache of guests' data, bounded in time and number, and a limit of concurrent requests per guest."""

from __future__ import annotations

import contextlib
import threading
import time
from collections import Counter, OrderedDict
from collections.abc import Callable, Hashable, Iterator
from typing import Generic, TypeVar

from nova import failures

Item = TypeVar("Item")

MOST = 2000  # guests; the files of one guest have some tens of KB


class Busy(Exception):
    """The limit of concurrent requests of a guest is reached."""


class ConcurrencyLimiter:
    """A limit of ``most`` concurrent requests of one guest. More are refused, so that other guests need not wait for
    them."""

    def __init__(self, most: int) -> None:
        self._most, self._inside, self._lock = most, Counter[Hashable](), threading.Lock()

    @contextlib.contextmanager
    def through(self, key: Hashable) -> Iterator[None]:
        """Count a request of ``key`` while the block runs. Raises Busy if ``most`` of them are running already."""
        with self._lock:
            if self._inside[key] >= self._most:
                raise Busy
            self._inside[key] += 1
        try:
            yield
        finally:
            with self._lock:
                self._inside[key] -= 1
                if not self._inside[key]:
                    del self._inside[key]

    def __len__(self) -> int:
        return len(self._inside)


class Making(Generic[Item]):
    """The creation of one item, for which other threads can wait."""

    def __init__(self) -> None:
        self._done = threading.Event()
        self._item: Item | None = None
        self._error: BaseException | None = None

    def run(self, make: Callable[[], Item]) -> Item:
        def keep(error: BaseException) -> None:
            self._error = error
        try:
            with failures.reported_to(keep, on=BaseException):
                self._item = made = make()
                return made
        finally:
            self._done.set()

    def wait(self) -> Item:
        """Wait for the item without a timeout. Raises the exception of its creation, if any."""
        self._done.wait()
        if self._error is not None:
            raise self._error
        return self._item  # type: ignore[return-value]


class Cache(Generic[Item]):
    """A cache that creates missing items. A booting guest sends ten requests in a second: one creation serves all of
    them, including requests that arrive while it runs."""

    def __init__(self, lasts_s: float, most: int = MOST, clock: Callable[[], float] = time.monotonic) -> None:
        self._lasts_s, self._most, self._clock = lasts_s, most, clock
        self._items: OrderedDict[Hashable, tuple[float, Item]] = OrderedDict()  # oldest first
        self._makings: dict[Hashable, Making[Item]] = {}
        self._lock = threading.Lock()

    def get(self, key: Hashable, make: Callable[[], Item], fresh: bool = False) -> Item:
        """Return the item of the key, at most ``lasts_s`` old (``fresh``: created now). Errors of ``make`` are not
        cached."""
        if self._lasts_s <= 0:
            return make()
        with self._lock:
            self._drop_old()
            if not fresh and key in self._items:
                return self._items[key][1]
            making = self._makings.get(key)
            mine = making is None
            if making is None:
                making = self._makings[key] = Making()
        if not mine:
            return making.wait()

        def undo() -> None:
            with self._lock:
                self._end(key, making)
        with failures.on_failure(undo, on=BaseException):
            item = making.run(make)
        with self._lock:
            if self._end(key, making):
                self._keep(key, item)
        return item

    def forget(self, key: Hashable) -> None:
        """Discard the key's item. An item that is being created may be outdated: new callers do not wait for it, and it
        is not cached."""
        with self._lock:
            self._items.pop(key, None)
            self._makings.pop(key, None)

    def __len__(self) -> int:
        return len(self._items)

    def _end(self, key: Hashable, making: Making[Item]) -> bool:
        """Return whether the creation counts: the key was not discarded meanwhile."""
        counts = self._makings.get(key) is making
        if counts:
            del self._makings[key]
        return counts

    def _keep(self, key: Hashable, item: Item) -> None:
        self._items.pop(key, None)
        self._items[key] = (self._clock() + self._lasts_s, item)
        while len(self._items) > self._most:
            self._items.popitem(last=False)

    def _drop_old(self) -> None:
        now = self._clock()
        while self._items:
            key, (ends, _item) = next(iter(self._items.items()))
            if ends > now:
                return
            del self._items[key]
