"""Pieces of man pages: roff with the macros of man(7)."""

from __future__ import annotations

import re
from collections.abc import Iterable

MARK = '.\\" Generated from the code by `bin/test docs --write`: edit the code instead.\n'
#: Characters that roff takes for something else, or prints as another one. A hyphen must be what one types.
SPELT = str.maketrans({"\\": "\\(rs", "-": "\\-", "'": "\\(aq", "`": "\\(ga", "^": "\\(ha", "~": "\\(ti",
                       '"': "\\(dq"})
NOTHING = "\\&\n"  # a line that prints nothing


def escape(text: str) -> str:
    """Text that prints as it stands, at any place of a line."""
    spelt = text.translate(SPELT)
    return f"\\&{spelt}" if spelt.startswith(".") else spelt


def bold(text: str) -> str:
    return f"\\fB{escape(text)}\\fR"


def italic(text: str) -> str:
    return f"\\fI{escape(text)}\\fR"


def prose(text: str) -> str:
    """A line a sentence; what stands in `` ` `` is bold."""
    lines = []
    for sentence in re.split(r"(?<=[.?!]) (?=[A-Z])", " ".join(text.split())):
        parts = re.split(r"`+([^`]+)`+", sentence)
        spelt = "".join(bold(part) if index % 2 else part.translate(SPELT) for index, part in enumerate(parts))
        lines.append(f"\\&{spelt}" if spelt.startswith(".") else spelt)
    return "\n".join(lines) + "\n"


def title(name: str, section: int) -> str:
    """The first lines. There is no date: a page changes with what it says, and not with the day. No name of an option
    is parted at the end of a line."""
    return f'{MARK}.TH "{escape(name.upper())}" {section} "" "Nova" "Nova\\(aqs manual"\n.ad l\n.nh\n'


def heading(text: str) -> str:
    return f".SH {text}\n"


def subheading(text: str) -> str:
    return f'.SS "{escape(text)}"\n'


def paragraph(text: str) -> str:
    return f".PP\n{prose(text)}"


def item(term: str, text: str) -> str:
    """``term`` is roff already."""
    return f".TP\n{term}\n{prose(text) if text else NOTHING}"


def lines(rows: Iterable[str]) -> str:
    """Rows of roff that are not filled to paragraphs. A long one goes on indented."""
    return "".join(f".HP\n{row}\n" for row in rows)
