"""Parser of the arguments of `bin/test`: names of parts, and arguments of a single part."""

from __future__ import annotations

from typing import NamedTuple

from testlib.parts import BENCHES, LONG

TURNS, ALL = "turns", "long"
NAMES = (ALL, *LONG, "books", "mutations", "fuzz", *BENCHES, "docs", TURNS)
#: Parts that cannot be combined with others.
ALONE = (TURNS, *BENCHES)
#: Parts with arguments of their own, which may equal names of parts: these end the list of parts.
OWN_WORDS = ("fresh", "installers", "tempest", "clients", "mutations", "fuzz", *ALONE)


class Command(NamedTuple):
    """A parsed command line. ``parts``: the named ones; empty: CI's, or with ``long`` all that have a long run.
    ``words``: arguments of a single part. ``long``: run all tests instead of samples."""

    parts: tuple[str, ...]
    words: list[str]
    long: bool = False


def read(given: list[str]) -> Command:
    """Parse the arguments. The leading names are the parts, up to a part with own arguments. Raises ValueError."""
    count = 0
    while count < len(given) and given[count] in NAMES and (not count or given[count - 1] not in OWN_WORDS):
        count += 1
    parts, words = tuple(dict.fromkeys(given[:count])), given[count:]
    alone = [name for name in parts if name in ALONE]
    if alone and len(parts) > 1:
        raise ValueError(f"{alone[0]} runs alone, not with {', '.join(name for name in parts if name != alone[0])}")
    if words and parts == (ALL,):
        raise ValueError(f"{words[0]!r} must follow the one part that it is for: bin/test {ALL} PART {words[0]}")
    if words and not parts:
        raise ValueError(f"{words[0]!r} is not a part; the parts are {', '.join(NAMES)}")
    if words and len(parts) - (ALL in parts) > 1:
        raise ValueError(f"{words[0]!r} must follow the one part that it is for; parts given: {', '.join(parts)}")
    if ALL in parts and parts[0] != ALL:
        raise ValueError(f"{ALL} must precede the parts that it is for: bin/test {ALL} {parts[0]}")
    return Command(parts[ALL in parts:], words, ALL in parts)
