"""How ``nova-manage`` says things: lines, and tables."""

from __future__ import annotations

import sys
from collections.abc import Sequence


def say(text: str = "") -> None:
    """A line on standard output."""
    sys.stdout.write(text + "\n")


def say_now(text: str = "") -> None:
    """For what takes long: whoever reads the output from a pipe sees each line as it comes."""
    say(text)
    sys.stdout.flush()


def table(headings: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Columns as wide as their widest cell."""
    cells = [list(map(str, headings)), *[["" if cell is None else str(cell) for cell in row] for row in rows]]
    widths = [max(len(row[column]) for row in cells) for column in range(len(headings))]
    for row in cells:
        say("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())
