"""Operators of flavor extra specs (ComputeCapabilitiesFilter)."""

from __future__ import annotations

import operator
from collections.abc import Callable

_NUMBERS: dict[str, Callable[[float, float], bool]] = {
    "=": operator.ge, "==": operator.eq, "!=": operator.ne, ">=": operator.ge, "<=": operator.le}

_TEXTS: dict[str, Callable[[str, str], bool]] = {
    "s==": operator.eq, "s!=": operator.ne, "s<": operator.lt, "s<=": operator.le, "s>": operator.gt,
    "s>=": operator.ge}


def meets(value: object, wanted: str) -> bool:
    """Return whether a host's value meets the requested one. Without an operator, both must be the same text.

    A numeric comparison fails if either side is not a number.
    """
    words = wanted.split()
    head, rest = (words[0], words[1:]) if words else ("", [])
    if head in _NUMBERS and len(rest) == 1:
        try:
            return _NUMBERS[head](float(str(value)), float(rest[0]))
        except ValueError:
            return False
    if head in _TEXTS and len(rest) == 1:
        return _TEXTS[head](str(value), rest[0])
    if head == "<in>":
        return " ".join(rest) in str(value) if rest else False
    if head == "<all-in>":
        has = value if isinstance(value, (list, tuple, set, frozenset)) else str(value).split()
        members = [word for word in rest if word != "<all-in>"]
        return bool(members) and all(word in has for word in members)
    if head == "<or>":
        return str(value) in [choice.strip() for choice in wanted.split("<or>") if choice.strip()]
    return str(value) == wanted
