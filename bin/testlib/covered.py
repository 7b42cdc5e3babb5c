"""The turns of a part's run and their results, from the reports of its processes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Any

from testlib.turns import Place, place_of


class Covered:
    """The turns of one run. A turn passed if tests of it passed, and every failed test passed at the second attempt."""

    def __init__(self) -> None:
        self.known: set[Place] = set()
        self.had: set[Place] = set()  # tests of it passed
        self.failed: defaultdict[Place, set[str]] = defaultdict(set)  # names of tests
        self.broken = False  # a process died, or ended before its tests
        self.complete = True

    def add(self, told: dict[str, Any]) -> None:
        """Add the report of a pytest process; an empty one means that the process died."""
        self.known.update(map(place_of, told.get("known", ())))
        self.had.update(map(place_of, told.get("passed", ())))
        for text, names in told.get("failed", {}).items():
            self.failed[place_of(text)].update(names)
        self.broken |= told.get("broken", True)
        self.complete &= told.get("complete", False)

    def whole(self, places: Iterable[Place], failed: Iterable[str] | None) -> None:
        """Add a run whose tests all belong to these turns. ``failed``: names of tests; None: the whole run failed."""
        for place in places:
            self.known.update(Place(place.of, number) for number in range(place.of))
            self.had.add(place)
            self.failed[place].update(["the whole run"] if failed is None else failed)

    def excuse(self, names: Iterable[str]) -> None:
        """Remove failed tests that passed at the second attempt."""
        for failed in self.failed.values():
            failed.difference_update(names)

    def passed(self) -> list[Place]:
        return [] if self.broken else sorted(place for place in self.had if not self.failed.get(place))
