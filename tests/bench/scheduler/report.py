"""Rows as they come, and the verdicts at the end."""

from __future__ import annotations

import sys
from typing import NamedTuple


def say(text: str = "") -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


class Verdict(NamedTuple):
    what: str
    found: float
    bound: float
    at_most: bool = True

    @property
    def kept(self) -> bool:
        return self.found <= self.bound if self.at_most else self.found >= self.bound

    def __str__(self) -> str:
        sign = "<=" if self.at_most else ">="
        return f"{'ok' if self.kept else 'MISSED':7} {self.what}: {self.found:,.2f} ({sign} {self.bound:,.0f})"


class Report:
    """Headings and rows; ``verdicts`` are printed together, last."""

    def __init__(self) -> None:
        self.verdicts: list[Verdict] = []
        self._widths: list[int] = []

    def table(self, title: str, *headings: str) -> None:
        say(f"\n{title}")
        self._widths = [max(9, len(heading)) + 2 for heading in headings]
        self.row(*headings)

    def row(self, *cells: object) -> None:
        shown = [_shown(cell) for cell in cells]
        say(" ".join(cell.rjust(width) for cell, width in zip(shown, self._widths, strict=True)))

    def judge(self, what: str, found: float, bound: float, at_most: bool = True) -> None:
        self.verdicts.append(Verdict(what, found, bound, at_most))

    def finish(self) -> None:
        say("\nagainst other figures of this run, and bounds")
        for verdict in self.verdicts:
            say(f"  {verdict}")


def _shown(cell: object) -> str:
    if isinstance(cell, float):
        return f"{cell:,.3f}" if abs(cell) < 10 else f"{cell:,.1f}"
    return f"{cell:,}" if isinstance(cell, int) else str(cell)
