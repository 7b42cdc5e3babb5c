"""Every table has a line in doc/operating.rst that says what bounds it."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

from nova.db.models import api, cell

PAGE = Path(__file__).resolve().parents[3] / "doc" / "operating.rst"
BEGIN, END = "Every table, and what bounds it:", "A test makes and deletes"


def told() -> list[str]:
    """The tables of the first column."""
    part = PAGE.read_text().split(BEGIN)[1].split(END)[0]
    cells = re.findall(r"^   \* - (.*?)^     - ", part, re.S | re.M)
    return [name for one in cells for name in re.findall(r"``(\w+)``", one)]


def test_tables_then_each_is_told_of_once() -> None:
    assert Counter(told()) == Counter([*api.metadata.tables, *cell.metadata.tables])
