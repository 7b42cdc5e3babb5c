"""Pieces of man pages: roff with the macros of man(7)."""

from __future__ import annotations

import re
from collections.abc import Iterable

MARK = '.\\" Generated from the code by `bin/test docs --write`: edit the code instead.\n'
#: Characters that roff interprets, or prints as other ones. A hyphen must print as the one on the keyboard.
SPELT = str.maketrans({"\\": "\\(rs", "-": "\\-", "'": "\\(aq", "`": "\\(ga", "^": "\\(ha", "~": "\\(ti",
                       '"': "\\(dq"})
NOTHING = "\\&\n"  # a line that prints nothing


def escape(text: str) -> str:
    """Escape a text so that roff prints it unchanged, at any place of a line."""
    spelt = text.translate(SPELT)
    return f"\\&{spelt}" if spelt.startswith(".") else spelt


def bold(text: str) -> str:
    return f"\\fB{escape(text)}\\fR"


def italic(text: str) -> str:
    return f"\\fI{escape(text)}\\fR"


def prose(text: str) -> str:
    """Return a text with one line for each sentence; text in `` ` `` is bold."""
    lines = []
    for sentence in re.split(r"(?<=[.?!]) (?=[A-Z])", " ".join(text.split())):
        parts = re.split(r"`+([^`]+)`+", sentence)
        spelt = "".join(bold(part) if index % 2 else part.translate(SPELT) for index, part in enumerate(parts))
        lines.append(f"\\&{spelt}" if spelt.startswith(".") else spelt)
    return "\n".join(lines) + "\n"


def title(name: str, section: int) -> str:
    """Return the first lines of a page. They have no date: a page changes only with its contents. Hyphenation is off,
    so that names of options are not split."""
    return f'{MARK}.TH "{escape(name.upper())}" {section} "" "Nova" "Nova\\(aqs manual"\n.ad l\n.nh\n'


def heading(text: str) -> str:
    return f".SH {text}\n"


def subheading(text: str) -> str:
    return f'.SS "{escape(text)}"\n'


def paragraph(text: str) -> str:
    return f".PP\n{prose(text)}"


def item(term: str, text: str) -> str:
    """Return an item of a list; ``term`` is roff."""
    return f".TP\n{term}\n{prose(text) if text else NOTHING}"


def lines(rows: Iterable[str]) -> str:
    """Return rows of roff that are not joined into paragraphs. Continuation lines of a long row are indented."""
    return "".join(f".HP\n{row}\n" for row in rows)
