"""What the words after `bin/test` mean: names of parts, and what is for the one part that they name."""

from __future__ import annotations

from typing import NamedTuple

from testlib.parts import BENCHES, LONG

TURNS, ALL = "turns", "long"
NAMES = (ALL, *LONG, "books", "mutations", "fuzz", *BENCHES, "docs", TURNS)
#: What takes no other part beside it.
ALONE = (TURNS, *BENCHES)
#: What has words of its own, which may be names of parts, too: these end the list of parts.
OWN_WORDS = ("fresh", "installers", "tempest", "clients", "mutations", "fuzz", *ALONE)


class Command(NamedTuple):
    """``parts``: those named; none: CI's, or all that have a long run. ``words``: for the part, if there is just one.
    ``long``: everything of them, no samples."""

    parts: tuple[str, ...]
    words: list[str]
    long: bool = False


def read(given: list[str]) -> Command:
    """The longest row of names at the front is the parts; a part with words of its own ends it. ValueError."""
    count = 0
    while count < len(given) and given[count] in NAMES and (not count or given[count - 1] not in OWN_WORDS):
        count += 1
    parts, words = tuple(dict.fromkeys(given[:count])), given[count:]
    alone = [name for name in parts if name in ALONE]
    if alone and len(parts) > 1:
        raise ValueError(f"{alone[0]} runs alone, not beside {', '.join(name for name in parts if name != alone[0])}")
    if words and parts == (ALL,):
        raise ValueError(f"{words[0]!r} must follow the one part that it is for: bin/test {ALL} PART {words[0]}")
    if words and not parts:
        raise ValueError(f"{words[0]!r} is no part; the parts are {', '.join(NAMES)}")
    if words and len(parts) - (ALL in parts) > 1:
        raise ValueError(f"{words[0]!r} must follow the one part that it is for, and here are {', '.join(parts)}")
    if ALL in parts and parts[0] != ALL:
        raise ValueError(f"{ALL} goes before the parts that it is for: bin/test {ALL} {parts[0]}")
    return Command(parts[ALL in parts:], words, ALL in parts)
