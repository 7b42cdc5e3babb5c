"""Scheduler hints that name other servers (API reference, ``os:scheduler_hints``). Users may send any values."""

from __future__ import annotations

from collections.abc import Mapping

DIFFERENT_HOST, SAME_HOST = "different_host", "same_host"
UUID_LENGTH = 36


def named(hints: Mapping[str, object], hint: str) -> tuple[str, ...]:
    """Return the servers that a hint names: a uuid, or a list of uuids. Values that are not text are ignored."""
    given = hints.get(hint)
    several = given if isinstance(given, (list, tuple)) else [given]
    return tuple(one for one in several if isinstance(one, str) and one)


def all_named(hints: Mapping[str, object]) -> frozenset[str]:
    """Return the servers that any hint names, without texts that do not have the length of a uuid."""
    return frozenset(one for hint in (DIFFERENT_HOST, SAME_HOST) for one in named(hints, hint)
                     if len(one) == UUID_LENGTH)
