"""What guests were told lately, bounded in time and number; and how much one guest may ask at a time."""

from __future__ import annotations

import contextlib
import threading
import time
from collections import Counter, OrderedDict
from collections.abc import Callable, Hashable, Iterator
from typing import Generic, TypeVar

Item = TypeVar("Item")

MOST = 2000  # guests; a guest's files are some tens of KB


class Busy(Exception):
    """As many requests of this one are in work as may be."""


class Turnstile:
    """Lets ``most`` requests of one guest be in work at a time. More are turned away: no other guest's wait for it."""

    def __init__(self, most: int) -> None:
        self._most, self._inside, self._lock = most, Counter[Hashable](), threading.Lock()

    @contextlib.contextmanager
    def through(self, key: Hashable) -> Iterator[None]:
        """Count a request of ``key`` for as long as the block runs. Busy: ``most`` of them are in work already."""
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
    """One making of an item, which others wait for."""

    def __init__(self) -> None:
        self._done = threading.Event()
        self._item: Item | None = None
        self._error: BaseException | None = None

    def run(self, make: Callable[[], Item]) -> Item:
        try:
            self._item = made = make()
            return made
        except BaseException as error:
            self._error = error
            raise
        finally:
            self._done.set()

    def wait(self) -> Item:
        """Wait for the item, however long its making takes; what the making raised is raised here, too."""
        self._done.wait()
        if self._error is not None:
            raise self._error
        return self._item  # type: ignore[return-value]


class Cache(Generic[Item]):
    """Makes what it does not have. A guest that boots asks ten times in a second: one making serves them all, those
    that come while it goes on, too."""

    def __init__(self, lasts_s: float, most: int = MOST, clock: Callable[[], float] = time.monotonic) -> None:
        self._lasts_s, self._most, self._clock = lasts_s, most, clock
        self._items: OrderedDict[Hashable, tuple[float, Item]] = OrderedDict()  # oldest first
        self._makings: dict[Hashable, Making[Item]] = {}
        self._lock = threading.Lock()

    def get(self, key: Hashable, make: Callable[[], Item], fresh: bool = False) -> Item:
        """The item of the key, at most ``lasts_s`` old (``fresh``: made now). What ``make`` raises is not kept."""
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
        try:
            item = making.run(make)
        except BaseException:
            with self._lock:
                self._end(key, making)
            raise
        with self._lock:
            if self._end(key, making):
                self._keep(key, item)
        return item

    def forget(self, key: Hashable) -> None:
        """What is being made now may be old already: nobody new waits for it, and it is not kept."""
        with self._lock:
            self._items.pop(key, None)
            self._makings.pop(key, None)

    def __len__(self) -> int:
        return len(self._items)

    def _end(self, key: Hashable, making: Making[Item]) -> bool:
        """Whether the making counts: nobody said meanwhile that it is to be forgotten."""
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
