"""Spans of API versions in tables. A version is ``MAJOR.N``; an API has one major, so that ``N`` says it all."""

from __future__ import annotations


def minor(text: str) -> int:
    """``"2.55"`` -> 55."""
    return int(text.partition(".")[2])


def within(version: int, since: str | None, until: str | None) -> bool:
    """Whether a row that holds from ``since`` to ``until`` (both included, None: open) holds at ``version``."""
    return (since is None or version >= minor(since)) and (until is None or version <= minor(until))
