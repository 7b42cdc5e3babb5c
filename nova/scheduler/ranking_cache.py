"""Data kept between decisions: changes of the hosts, and rankings of them (see ``ranking``)."""

from __future__ import annotations

import contextlib
import gc
import itertools
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator

from nova.scheduler.ranking import Ranking
from nova.scheduler.views import HostView

KEPT_CHANGES = 20_000  # hosts whose newest change is kept
KEPT_HOSTS = 200_000  # in all rankings together; about 0.6 KB each
KEPT_RANKINGS = 128
NOTED_KINDS = 1000  # kinds of requests that are remembered as seen
WORTH_IT = 4  # a ranking is rebuilt when more than one in this many hosts changed


class Changes:
    """Hosts that changed or were removed (None), in order. Each host has a number, in the order of arrival.

    The owner keeps the hosts in a dict, and notes each host that is added, changed or removed. Only the newest change
    of each host is kept: a server that is created and deleted changes its host five times, by some KB of views.
    """

    def __init__(self, kept: int = KEPT_CHANGES) -> None:
        self._kept = kept
        self._numbers: dict[tuple[str, str], int] = {}
        self._next = 0
        self._newest: OrderedDict[int, tuple[int, HostView | None]] = OrderedDict()  # host -> (change, new view)
        self._forgotten = 0
        self.count = 0  # number of changes so far

    def __len__(self) -> int:
        """Return the number of kept changes."""
        return len(self._newest)

    def note(self, key: tuple[str, str], view: HostView | None) -> None:
        """Note that the host ``key`` now has this view (None: it was removed). A new host gets its number."""
        number = self._numbers.get(key)
        if number is None:
            if view is None:
                return
            number = self._numbers[key] = self._next
            self._next += 1
        elif view is None:
            del self._numbers[key]
        self.count += 1
        self._newest[number] = self.count, view
        self._newest.move_to_end(number)
        if len(self._newest) > self._kept:
            _, (self._forgotten, _) = self._newest.popitem(last=False)

    def since(self, count: int) -> dict[int, HostView | None] | None:
        """Return the newest view of each host that changed after change ``count``; None if that is no longer known."""
        if count < self._forgotten:
            return None
        newer = itertools.takewhile(lambda one: one[1][0] > count, reversed(self._newest.items()))
        return {number: view for number, (_, view) in newer}

    def numbered(self, hosts: Iterable[HostView]) -> Iterator[tuple[int, HostView]]:
        """Return (number, view) of all existing hosts, which are given in the order of their dict."""
        return zip(self._numbers.values(), hosts, strict=True)


@contextlib.contextmanager
def _without_collecting() -> Iterator[None]:
    """Disable garbage collection while tens of thousands of objects are created: none is garbage, and repeated
    collections would double the time."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


class Rankings:
    """The rankings of the most recently requested kinds of requests, with a limit on their hosts together."""

    def __init__(self, kept_hosts: int = KEPT_HOSTS) -> None:
        self._kept_hosts = kept_hosts
        self._noted: OrderedDict[bytes, None] = OrderedDict()
        self._rankings: OrderedDict[bytes, tuple[Changes, Ranking]] = OrderedDict()

    def worth(self, kind: bytes) -> bool:
        """Return whether the kind was requested before: rankings of single requests would evict those of frequent
        ones."""
        if kind in self._rankings or kind in self._noted:
            return True
        self._noted[kind] = None
        if len(self._noted) > NOTED_KINDS:
            self._noted.popitem(last=False)
        return False

    def take_out(self, kind: bytes, changes: Changes, hosts: tuple[HostView, ...],
                 make: Callable[[Iterable[tuple[int, HostView]]], Ranking]) -> Ranking:
        """Remove and return the kind's ranking, updated to the current hosts. The caller puts it back, unless an error
        occurs."""
        of, ranking = self._rankings.pop(kind, (None, None))
        news = changes.since(ranking.seen) if ranking is not None and of is changes else None
        if ranking is None or news is None or len(news) > len(hosts) // WORTH_IT:
            with _without_collecting():
                ranking = make(changes.numbered(hosts))
        else:
            ranking.give_back(news)
            for number, view in news.items():
                ranking.update(number, view)
        ranking.seen = changes.count
        return ranking

    def put_back(self, kind: bytes, changes: Changes, ranking: Ranking) -> None:
        """Put back a ranking that was taken out. If there are too many, the least recently used kinds are dropped."""
        self._rankings[kind] = (changes, ranking)
        most = min(KEPT_RANKINGS, max(1, self._kept_hosts // max(1, len(ranking.views))))
        while len(self._rankings) > most:
            self._rankings.popitem(last=False)
