"""Ranking of the hosts for one kind of request, maintained while a few hosts change at a time.

A decision over 10,000 hosts need not check all of them. Hosts that changed since the last decision of the same kind are
checked and weighed again, and the best are found from an order that is nearly correct. The result is exactly that of
weighing all hosts again (``tests/unit/scheduler/test_ranking.py`` compares the two).

Hosts with equal weigher values form one class. The weight of a class is the sum over the weighers of ``(value - lowest)
* multiplier / (highest - lowest)``. When the lowest or highest values change, all weights change, but none grows by
more than a *slack* that follows from the movement of these ends. The classes therefore stay in the order of their
weights at the last full sort. A search for the best reads on until no later class can be better by the slack. When that
takes long, the order is sorted again. Classes that were added since the last full sort have a separate order, which is
smaller and sorted more often.
"""

from __future__ import annotations

import array
import bisect
import math
import operator
from collections import Counter
from collections.abc import Callable, Iterable, Sequence

import msgspec

from nova.model.scheduling.decisions import PlacementRequest
from nova.scheduler.views import HostView
from nova.scheduler.weighers import Weigher

ROUNDING = 1e-9  # possible error of sums of scaled values
PATIENCE = 16  # classes that a search may read without result each time
MOST_EMPTY = 1000  # entries of classes without hosts that are kept

Ends = list[tuple[float, float]]  # (lowest, highest) value of each weigher
Reach = list[tuple[float, float]]  # (lowest, highest) multiplier of each weigher among the hosts


class Unrankable(Exception):
    """Raised for a weigher value that is not a finite number, or for a weigher that had no effect before and has one
    now."""


#: Hosts -> the candidates among them, in their order.
HostFilter = Callable[[Iterable[HostView]], list[HostView]]


class _Class(msgspec.Struct, gc=False):
    """Hosts (by number, in their order) with the same values and multipliers.

    The garbage collector does not track its contents: thousands of them would take it longer than a decision.
    """

    values: tuple[float, ...]
    factors: tuple[float, ...]
    members: array.array[int]


class _Column:
    """A weigher's distinct values among the hosts, with the lowest and the highest."""

    __slots__ = ("counts", "sorted")

    def __init__(self, values: Sequence[float]) -> None:
        if not math.isfinite(sum(values)):
            raise Unrankable("not a finite number")
        self.counts = Counter(values)
        self.sorted = sorted(self.counts)

    def add(self, value: float) -> None:
        count = self.counts.get(value, 0)
        self.counts[value] = count + 1
        if not count:
            if not math.isfinite(value):
                raise Unrankable(value)
            bisect.insort(self.sorted, value)

    def remove(self, value: float) -> None:
        count = self.counts[value] - 1
        if count:
            self.counts[value] = count
        else:
            del self.counts[value]
            del self.sorted[bisect.bisect_left(self.sorted, value)]


class _Order:
    """Classes by their weights at ``ends``, the best first. ``closed``: no classes are added."""

    def __init__(self, classes: Iterable[_Class], ends: Ends, reach: Reach, closed: bool) -> None:
        found = list(classes)
        self.ends, self.reach, self._closed = ends, reach, closed
        weights = map(operator.neg, _weights(found, ends, reach))
        self._entries = list(zip(weights, range(len(found)), found, strict=True))
        self._entries.sort()
        self._serial = len(found)
        self._first = 0
        self.extra_reads = 0

    def __len__(self) -> int:
        return len(self._entries) - self._first

    def add(self, one: _Class) -> None:
        self._serial += 1
        self.reach = [(min(least, factor), max(most, factor))
                       for (least, most), factor in zip(self.reach, one.factors, strict=True)]
        entry = (-_weight(one, self.ends), self._serial, one)
        at = bisect.bisect(self._entries, entry)
        self._entries.insert(at, entry)
        self._first = min(self._first, at)

    def classes(self) -> list[_Class]:
        return [one for _, _, one in self._entries if one.members]

    def best(self, ends: Ends, count: int, of_class: int, found: list[tuple[float, int]]) -> None:
        """Add (negative weight, number) of possible members of the ``count`` best, up to ``of_class`` of each class.
        ``found`` is sorted before and after."""
        slack = 0.0 if ends == self.ends else self._slack(ends)
        last = found[count - 1][0] if len(found) >= count else math.inf
        read, entries, first = 0, self._entries, self._first
        while first < len(entries) and not entries[first][2].members:
            first += 1
        self._first = first
        for at in range(first, len(entries)):
            bound, _, one = entries[at]
            if bound - slack > last:
                break
            read += 1
            if not one.members:
                continue
            weight = bound if not slack else -_weight(one, ends)
            if weight > last:
                continue
            found += [(weight, number) for number in one.members[:of_class]]
            if len(found) >= count:
                found.sort()
                last = found[count - 1][0]
        found.sort()
        self.extra_reads += max(0, read - count - PATIENCE)

    def _slack(self, ends: Ends) -> float:
        """Return the largest increase of any weight between this order's ends and the given ones.

        A class's shares of the old and the new span differ most at an end of the values in the order.
        """
        slack = ROUNDING
        for (low, high), (was_low, was_high), reach in zip(ends, self.ends, self.reach, strict=True):
            if low == high and was_low == was_high:
                continue
            edges = (max(low, was_low), min(high, was_high)) if self._closed else (low, high)
            changes = [_part(edge, low, high) - _part(edge, was_low, was_high) for edge in edges]
            slack += max(factor * change for factor in reach for change in changes)
        return slack or ROUNDING


class Ranking:
    """A ranking of hosts. ``hosts``: (number, view) in the order of their numbers, which decide between equal hosts.
    ``seen``: the last change of the hosts that it includes (see ``ranking_cache``)."""

    def __init__(self, passing: HostFilter, weighers: Sequence[Weigher], request: PlacementRequest,
                 hosts: Iterable[tuple[int, HostView]]) -> None:
        self._passing, self.request = passing, request
        hosts = list(hosts)
        counting = {name for own in {id(view.multipliers): view.multipliers for _, view in hosts}.values()
                    for name in own}
        heard = [one for one in weighers if not one.neutral(request)]
        self._weighers = [one for one in heard if one.multiplier or one.multiplier_option in counting]
        self._silent = {one.multiplier_option for one in heard} - {one.multiplier_option for one in self._weighers}
        self._usual = tuple(one.multiplier for one in self._weighers)
        self.views: dict[int, HostView] = {}
        self._class_of: dict[int, _Class] = {}
        self._classes: dict[tuple[object, ...], _Class] = {}
        self._factors_seen = {self._usual}
        self.taken: dict[int, HostView] = {}  # as they were before this decision's servers
        self.seen = 0
        self._fill(hosts)

    # -- contents

    def _fill(self, hosts: list[tuple[int, HostView]]) -> None:
        passed = self._passing([view for _, view in hosts])
        numbers = {id(view): number for number, view in hosts}
        self.views = {numbers[id(view)]: view for view in passed}
        columns = [one.weigh_all(passed, self.request) for one in self._weighers]
        self._columns = [_Column(column) for column in columns]
        rows: Iterable[tuple[float, ...]] = zip(*columns, strict=True) if columns else [()] * len(passed)
        for (number, view), values in zip(self.views.items(), rows, strict=True):
            found = self._class_of[number] = self._class(values, self._factors(view))
            found.members.append(number)
        self._look()

    def _factors(self, view: HostView) -> tuple[float, ...]:
        """Return the weighers' multipliers for a host, some of which its aggregates may have set."""
        if not view.multipliers:
            return self._usual
        if not self._silent.isdisjoint(view.multipliers):
            raise Unrankable(view.multipliers)
        factors = tuple(view.multipliers.get(one.multiplier_option, one.multiplier) for one in self._weighers)
        self._factors_seen.add(factors)
        return factors

    def _class(self, values: tuple[float, ...], factors: tuple[float, ...]) -> _Class:
        """Return the class of these values; a new one is not in an order yet."""
        key = values if factors is self._usual else (values, factors)
        found = self._classes.get(key)
        if found is None:
            found = self._classes[key] = _Class(values, factors, array.array("l"))
        return found

    def update(self, number: int, view: HostView | None) -> None:
        """Replace a host's view, or remove the host (None)."""
        if view is None or not self._passing((view,)):
            self._leave(number)
            self.views.pop(number, None)
            return
        self.views[number] = view
        request = self.request
        values, factors = tuple([one.weigh(view, request) for one in self._weighers]), self._factors(view)
        old = self._class_of.get(number)
        if old is not None:
            if old.values == values and old.factors == factors:
                return
            self._leave(number)
        self._join(number, values, factors)

    def _join(self, number: int, values: tuple[float, ...], factors: tuple[float, ...]) -> None:
        for column, value in zip(self._columns, values, strict=True):
            column.add(value)
        found = self._class(values, factors)
        if not found.members:
            self._news.add(found)
            if len(self._news) > len(self._classes) + MOST_EMPTY:
                self._look()
        bisect.insort(found.members, number)
        self._class_of[number] = found

    def _leave(self, number: int) -> None:
        found = self._class_of.pop(number, None)
        if found is None:
            return
        for column, value in zip(self._columns, found.values, strict=True):
            column.remove(value)
        del found.members[bisect.bisect_left(found.members, number)]
        if not found.members:  # its entry in the order stays, empty
            del self._classes[found.values if found.factors is self._usual else (found.values, found.factors)]

    # -- search

    def _now(self) -> Ends:
        return [(column.sorted[0], column.sorted[-1]) if column.sorted else (0.0, 0.0) for column in self._columns]

    def _look(self) -> None:
        """Sort all classes again."""
        ends = self._now()
        reach = [(min(factors), max(factors)) for factors in zip(*self._factors_seen, strict=True)]
        self._order = _Order(self._classes.values(), ends, reach, closed=True)
        self._news = _Order((), ends, reach, closed=False)

    def best(self, count: int) -> list[int]:
        """Return the numbers of the best hosts, the best first, at most ``count``."""
        return [number for _, number in self._find(count, count)[:count]]

    def equals(self) -> list[int]:
        """Return the numbers of all hosts that share the best weight."""
        found = self._find(1, len(self.views))
        return [number for weight, number in found if weight == found[0][0]]

    def _find(self, count: int, of_class: int) -> list[tuple[float, int]]:
        ends = self._now()
        found: list[tuple[float, int]] = []
        self._order.best(ends, count, of_class, found)
        self._news.best(ends, count, of_class, found)
        if self._order.extra_reads > len(self._classes):
            self._look()
        elif self._news.extra_reads > len(self._news):
            self._news = _Order(self._news.classes(), ends, self._news.reach, closed=False)
        return found

    # -- selected hosts

    def take(self, number: int, view: HostView) -> None:
        """Replace the host's view after a server was placed on it, until :meth:`give_back`."""
        self.taken.setdefault(number, self.views[number])
        self.update(number, view)

    def give_back(self, but: Iterable[int] = ()) -> None:
        """Restore the views from before servers were placed, except of the hosts ``but``, which get newer views."""
        back, self.taken = self.taken, {}
        for number in back.keys() - set(but):
            self.update(number, back[number])


def _part(value: float, low: float, high: float) -> float:
    """Return the value's relative position in the span, from 0 to 1; 0 for an empty span."""
    return (value - low) / (high - low) if low != high else 0.0


def _weight(one: _Class, ends: Ends) -> float:
    """Return the weight, bit by bit the same as ``Pipeline.weights``."""
    total = 0.0
    for value, factor, (low, high) in zip(one.values, one.factors, ends, strict=True):
        if low != high:
            total += (value - low) * (factor / (high - low))
    return total


def _weights(classes: Sequence[_Class], ends: Ends, reach: Reach) -> list[float]:
    """Return the weights of many classes; weigher by weigher if all hosts have the usual multipliers."""
    if any(least != most for least, most in reach):
        return [_weight(one, ends) for one in classes]
    totals = [0.0] * len(classes)
    for at, ((low, high), (factor, _)) in enumerate(zip(ends, reach, strict=True)):
        if low != high:
            scale = factor / (high - low)
            totals = [total + (one.values[at] - low) * scale for total, one in zip(totals, classes, strict=True)]
    return totals
