"""Pieces of reStructuredText."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Sequence

WIDTH = 118
MARK = ".. Generated from the code by `bin/test docs --write`: edit the code instead.\n"


def heading(text: str, line: str = "=") -> str:
    return f"{text}\n{line * len(text)}\n"


def plain(text: str) -> str:
    """Return a text with escaped markup: its stars and bars are plain text, and text in `` ` `` is literal."""
    parts = re.split(r"`+([^`]+)`+", text)
    for index in range(0, len(parts), 2):
        parts[index] = re.sub(r"([*|\\]|_(?=\W|$))", r"\\\1", parts[index])
    for index in range(1, len(parts), 2):
        parts[index] = literal(parts[index])
    return "".join(parts)


def literal(text: str) -> str:
    """Return a literal; an empty one is not valid, and becomes the word "nothing"."""
    return f"``{text}``" if text else "nothing"


def paragraph(text: str, indent: str = "") -> str:
    return textwrap.fill(text, WIDTH, initial_indent=indent, subsequent_indent=indent, break_long_words=False,
                         break_on_hyphens=False)


def table(headings: Sequence[str], rows: Iterable[Sequence[str]], widths: Sequence[int]) -> str:
    """Return a list-table: its cells may have any length, and a changed row does not change other lines."""
    lines = [".. list-table::", "   :header-rows: 1", f"   :widths: {' '.join(map(str, widths))}", ""]
    for row in (headings, *rows):
        for index, cell in enumerate(row):
            lines += _cell("   * - " if index == 0 else "     - ", cell)
    return "\n".join(lines) + "\n"


def compact_table(headings: Sequence[str], rows: Iterable[Sequence[str]], widths: Sequence[int]) -> str:
    """Return a csv-table with one line for each row, for short cells without quotation marks."""
    lines = [".. csv-table::", f"   :header: {_line(headings)}", f"   :widths: {', '.join(map(str, widths))}", ""]
    return "\n".join([*lines, *(f"   {_line(row)}" for row in rows)]) + "\n"


def _line(cells: Sequence[str]) -> str:
    return ", ".join(f'"{cell}"' for cell in cells)


def _cell(lead: str, text: str) -> list[str]:
    first, *others = textwrap.wrap(text, WIDTH - len(lead), break_long_words=False, break_on_hyphens=False) or [""]
    return [(lead + first).rstrip(), *(" " * len(lead) + other for other in others)]
