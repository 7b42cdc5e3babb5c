"""Pagination of object listings."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

MOST_KEYS = 1000  # per page


class ListingAsked(NamedTuple):
    """A list request. ``after``: the key or common prefix after which the page begins. ``most``: maximum number of keys
    and prefixes together."""

    prefix: str = ""
    delimiter: str = ""
    after: str = ""
    most: int = MOST_KEYS


@dataclass
class ListingPage:
    """A page of keys and common prefixes. ``truncated``: more pages follow; the next one begins after ``last``."""

    keys: list[str] = field(default_factory=list)
    prefixes: list[str] = field(default_factory=list)
    truncated: bool = False
    last: str = ""


def page_of(keys: Iterable[str], asked: ListingAsked) -> ListingPage:
    """Return a page of keys; keys with the same text up to the delimiter become one common prefix."""
    page = ListingPage()
    for key in sorted(key for key in keys if key.startswith(asked.prefix) and key > asked.after):
        shared = _common_prefix(key, asked)
        if shared and shared in (page.last, asked.after):
            continue
        if len(page.keys) + len(page.prefixes) >= asked.most:
            page.truncated = asked.most > 0
            break
        (page.prefixes if shared else page.keys).append(shared or key)
        page.last = shared or key
    return page


def _common_prefix(key: str, asked: ListingAsked) -> str:
    if not asked.delimiter:
        return ""
    end = key.find(asked.delimiter, len(asked.prefix))
    return "" if end < 0 else key[:end + len(asked.delimiter)]
