"""What is kept from one decision to the next: what became of the hosts, and rankings of them (see ``ranking``)."""

from __future__ import annotations

import contextlib
import gc
import itertools
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator

from nova.scheduler.ranking import Ranking
from nova.scheduler.views import HostView

KEPT_CHANGES = 20_000  # hosts whose newest change is known
KEPT_HOSTS = 200_000  # in the rankings of all kinds of requests together; about 0.6 KB each
KEPT_RANKINGS = 128
NOTED_KINDS = 1000  # of which we know that they were asked for
WORTH_IT = 4  # a ranking is made anew when more than one in so many hosts changed


class Changes:
    """Hosts that became others, or went (None), in order. Each has a number, in the order in which they came.

    Whoever notes the changes keeps the hosts in a dict, and notes each one that comes, changes or goes. Of each host
    the newest change alone is kept: a server that comes and goes changes its host five times, by some KB of views.
    """

    def __init__(self, kept: int = KEPT_CHANGES) -> None:
        self._kept = kept
        self._numbers: dict[tuple[str, str], int] = {}
        self._next = 0
        self._newest: OrderedDict[int, tuple[int, HostView | None]] = OrderedDict()  # which change, and to what
        self._forgotten = 0
        self.count = 0  # how many there ever were

    def __len__(self) -> int:
        """How many are kept."""
        return len(self._newest)

    def note(self, key: tuple[str, str], view: HostView | None) -> None:
        """The host ``key`` is ``view`` now (None: it went). A host that comes for the first time gets its number."""
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
        """The newest view of each host that changed since there were so many; None when that is forgotten."""
        if count < self._forgotten:
            return None
        newer = itertools.takewhile(lambda one: one[1][0] > count, reversed(self._newest.items()))
        return {number: view for number, (_, view) in newer}

    def numbered(self, hosts: Iterable[HostView]) -> Iterator[tuple[int, HostView]]:
        """(number, view) of all hosts that there are, given in the order of their dict."""
        return zip(self._numbers.values(), hosts, strict=True)


@contextlib.contextmanager
def _without_collecting() -> Iterator[None]:
    """Tens of thousands of new objects, none of them garbage: to look for some again and again would double the time.
    """
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


class Rankings:
    """The rankings of the kinds of requests that were asked for last, of at most so many hosts together."""

    def __init__(self, kept_hosts: int = KEPT_HOSTS) -> None:
        self._kept_hosts = kept_hosts
        self._noted: OrderedDict[bytes, None] = OrderedDict()
        self._rankings: OrderedDict[bytes, tuple[Changes, Ranking]] = OrderedDict()

    def worth(self, kind: bytes) -> bool:
        """Whether the kind was asked for before: what comes once would drive out what comes again and again."""
        if kind in self._rankings or kind in self._noted:
            return True
        self._noted[kind] = None
        if len(self._noted) > NOTED_KINDS:
            self._noted.popitem(last=False)
        return False

    def take_out(self, kind: bytes, changes: Changes, hosts: tuple[HostView, ...],
                 make: Callable[[Iterable[tuple[int, HostView]]], Ranking]) -> Ranking:
        """The kind's ranking as the hosts are now. Whoever takes it puts it back, unless something failed on the
        way."""
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
        """Keep a ranking that was taken out. The kinds that were put back longest ago are dropped when there are too
        many."""
        self._rankings[kind] = (changes, ranking)
        most = min(KEPT_RANKINGS, max(1, self._kept_hosts // max(1, len(ranking.views))))
        while len(self._rankings) > most:
            self._rankings.popitem(last=False)
