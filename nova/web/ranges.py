"""Spans of API versions in tables. A version is ``MAJOR.N``; an API has one major version, so ``N`` identifies it."""

from __future__ import annotations


def minor(text: str) -> int:
    """Return the number after the dot: ``"2.55"`` -> 55."""
    return int(text.partition(".")[2])


def within(version: int, since: str | None, until: str | None) -> bool:
    """Return whether a row for versions ``since`` to ``until`` (both included, None: open) applies at ``version``."""
    return (since is None or version >= minor(since)) and (until is None or version <= minor(until))
