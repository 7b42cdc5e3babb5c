"""Parsers of requirements in extra specs and image properties, and the error for impossible requirements."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

from nova import errors
from nova.model.scheduling.image_flavor_conflicts import YES

NO = frozenset({"no", "false", "off", "0", "n", "f"})
_UNITS = {"": 0, "k": 1, "m": 2, "g": 3, "t": 4}
MOST_PAGE_KB = 1 << 40
MOST_VCPUS = 8192  # of a guest with settings per CPU: more than any host provides


class Said(NamedTuple):
    """A value, with the name of its property or extra spec."""

    name: str
    value: str

    def wrong(self, reason: str) -> errors.Invalid:
        """Return the error server.ImpossibleRequirement for this value, to be raised. It contains at most 255
        characters of the value."""
        return errors.server.ImpossibleRequirement(name=self.name, value=self.value[:255], reason=reason)


def said(given: Mapping[str, str], name: str) -> Said | None:
    """Return the value of a name; None if it is not set."""
    value = given.get(name)
    return None if value is None else Said(name, value.strip())


def flag(one: Said | None) -> bool | None:
    """Return the value of a flag; None if it is not set. Raises server.ImpossibleRequirement."""
    if one is None:
        return None
    if one.value.lower() not in YES | NO:
        raise one.wrong("it must be yes or no")
    return one.value.lower() in YES


def choice(one: Said | None, *allowed: str) -> str | None:
    """Return the value, which must be one of ``allowed``; None if it is not set. Raises
    server.ImpossibleRequirement."""
    if one is not None and one.value not in allowed:
        raise one.wrong(f"it must be one of {', '.join(allowed)}")
    return one.value if one else None


def number(one: Said, least: int = 0, most: int = 2147483647) -> int:
    """Return an integer from ``least`` to ``most``, both included. Raises server.ImpossibleRequirement."""
    if not re.fullmatch(r"[0-9]{1,18}", one.value) or not least <= int(one.value) <= most:
        raise one.wrong(f"it must be an integer from {least} to {most}")
    return int(one.value)


def processors(one: Said, vcpus: int) -> frozenset[int]:
    """Return a set of guest CPUs, such as ``0-3,^2``. A set of only exclusions means all other CPUs."""
    countable(one, vcpus)
    chosen: set[int] = set()
    left_out: set[int] = set()
    parts = [part.strip() for part in one.value.split(",")]
    for part in parts:
        found = re.fullmatch(r"(\^?)([0-9]{1,9})(?:-([0-9]{1,9}))?", part)
        if found is None:
            raise one.wrong("it must be a CPU set such as 0-3,^2")
        first, last = int(found[2]), int(found[3] or found[2])
        if last >= vcpus or first > last:
            raise one.wrong(f"the server has the CPUs 0 to {vcpus - 1}")
        (left_out if found[1] else chosen).update(range(first, last + 1))
    if all(part.startswith("^") for part in parts):
        chosen = set(range(vcpus))
    return frozenset(chosen - left_out)


def countable(one: Said, vcpus: int) -> None:
    """Raise server.ImpossibleRequirement if the server has too many CPUs to evaluate settings per CPU in reasonable
    time."""
    if vcpus > MOST_VCPUS:
        raise one.wrong(f"the server has {vcpus} CPUs, more than the {MOST_VCPUS} that per-CPU settings support")


def page_size(one: Said) -> str:
    """Return small, large, any, or a number of KB. A number without a unit is in KB; B means bytes, b and bit mean
    bits."""
    if one.value in ("small", "large", "any"):
        return one.value
    found = re.fullmatch(r"([0-9]{1,15})(?:([kKMGT])i?)?(b|bit|B)?", one.value)
    if found is None:
        raise one.wrong("it must be small, large, any, or a size such as 2048 (KB), 2MB or 1GB")
    if not found[2] and not found[3]:
        size_kb = int(found[1])
    else:
        size = int(found[1]) * 1024 ** _UNITS[(found[2] or "").lower()]
        size_kb = (size // 8 if found[3] in ("b", "bit") else size) // 1024
    if not 0 < size_kb <= MOST_PAGE_KB:
        raise one.wrong("the page size must be at least 1 KB")
    return str(size_kb)


__all__ = ["Said", "choice", "countable", "flag", "number", "page_size", "processors", "said"]
