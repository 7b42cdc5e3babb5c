"""What is said in a log, made harmless: clients choose parts of it, and an accident repeats it."""

from __future__ import annotations

#: Characters that end a line or move the cursor for some reader, spelt out.
_CONTROLS = {code: f"\\x{code:02x}" for code in (*range(32), *range(127, 160)) if chr(code) != "\t"} \
    | {0x2028: "\\u2028", 0x2029: "\\u2029"}

#: Characters of one event, which must not fill a disk. Of what is longer the end is kept, too: that is where a
#: traceback says what happened.
LONGEST, END = 16384, 4096


def shortened(text: str) -> str:
    """The text, or its beginning and its end with how much is left out between them."""
    left = len(text) - LONGEST
    return text if left <= 0 else f"{text[:LONGEST - END]} [{left} characters are left out] {text[-END:]}"


def on_one_line(text: str) -> str:
    """The text with its line ends and other controls spelt out, and of bounded length."""
    return shortened(text.replace("\n", " | ").translate(_CONTROLS))
