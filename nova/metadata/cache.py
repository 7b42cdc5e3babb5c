"""What guests were told lately, bounded in time and number."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

Item = TypeVar("Item")

MOST = 2000  # guests; a guest's files are some tens of KB


class Cache(Generic[Item]):
    """Makes what it does not have. A guest that boots asks ten times in a second: one making serves them all."""

    def __init__(self, lasts_s: float, most: int = MOST, clock: Callable[[], float] = time.monotonic) -> None:
        self._lasts_s, self._most, self._clock = lasts_s, most, clock
        self._items: OrderedDict[Hashable, tuple[float, Item]] = OrderedDict()  # oldest first
        self._lock = threading.Lock()

    def get(self, key: Hashable, make: Callable[[], Item]) -> Item:
        """The item of the key, at most ``lasts_s`` old. What ``make`` raises is not kept."""
        if self._lasts_s <= 0:
            return make()
        with self._lock:
            self._drop_old()
            if key in self._items:
                return self._items[key][1]
        item = make()
        with self._lock:
            self._items.pop(key, None)
            self._items[key] = (self._clock() + self._lasts_s, item)
            while len(self._items) > self._most:
                self._items.popitem(last=False)
        return item

    def forget(self, key: Hashable) -> None:
        with self._lock:
            self._items.pop(key, None)

    def __len__(self) -> int:
        return len(self._items)

    def _drop_old(self) -> None:
        now = self._clock()
        while self._items:
            key, (ends, _item) = next(iter(self._items.items()))
            if ends > now:
                return
            del self._items[key]
