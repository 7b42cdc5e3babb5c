"""Sanitized text for logs: clients choose parts of it, and failures may repeat it."""

from __future__ import annotations

#: Characters that end a line or move the cursor in some reader, escaped.
_CONTROLS = {code: f"\\x{code:02x}" for code in (*range(32), *range(127, 160)) if chr(code) != "\t"} \
    | {0x2028: "\\u2028", 0x2029: "\\u2029"}

#: Characters of one event, which must not fill a disk. The end of a longer text is kept too: a traceback states the
#: error there.
LONGEST, END = 16384, 4096


def shortened(text: str) -> str:
    """Return the text or, if it is too long, its beginning and end, with the number of omitted characters between
    them."""
    left = len(text) - LONGEST
    return text if left <= 0 else f"{text[:LONGEST - END]} [{left} characters omitted] {text[-END:]}"


def on_one_line(text: str) -> str:
    """Return the text with line ends and other control characters escaped, and of limited length."""
    return shortened(text.replace("\n", " | ").translate(_CONTROLS))
