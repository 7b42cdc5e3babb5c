"""What one value may be, whether it is, and what would be accepted: the words of every refusal."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import msgspec

from nova.web.formats import BOOLEANS, FORMATS

MAX_INTEGER = 2**63 - 1  # what databases hold
MOST_SHOWN = 200  # characters of a value that came in


@dataclass(frozen=True, kw_only=True)
class Spec:
    """What one value may be. ``type``: a JSON type's name or several, ``any``, ``boolean_like``, ``integer_like``
    and ``number_like`` (numbers, or text of them; the result is a number). ``one_of``: other shapes, one must fit.
    """

    type: str | tuple[str, ...] = "any"
    allowed: tuple[Any, ...] = ()
    pattern: str | None = None
    format: str | None = None
    min: float | None = None
    max: float | None = None
    above: float | None = None
    min_length: int | None = None
    max_length: int | None = None
    min_items: int | None = None
    max_items: int | None = None
    unique_items: bool = False
    min_keys: int | None = None
    max_keys: int | None = None
    any_key: tuple[str, ...] = ()  # one of these keys at least
    items: Spec | None = None
    one_of: tuple[Spec, ...] = ()
    huge: bool = False  # integers beyond 64 bits are let through: what reads them cuts them down

    @property
    def types(self) -> tuple[str, ...]:
        return (self.type,) if isinstance(self.type, str) else self.type


@functools.cache
def expression(pattern: str) -> re.Pattern[str]:
    """A pattern of the contract, compiled. ``$`` is the very end there; Python's lets one more line end follow."""
    return re.compile(re.sub(r"(?<!\\)\$", r"\\Z", pattern))


def _types() -> dict[str, Callable[[Any], bool]]:
    def integer(value: Any) -> bool:
        return isinstance(value, int) and not isinstance(value, bool)

    def number(value: Any) -> bool:
        return isinstance(value, (int, float)) and not isinstance(value, bool)

    def text(pattern: str) -> Callable[[Any], bool]:
        match = re.compile(pattern).fullmatch
        return lambda value: isinstance(value, str) and len(value) <= 40 and match(value) is not None

    integer_text, number_text = text(r"-?[0-9]+"), text(r"-?[0-9]+(\.[0-9]+)?")
    return {
        "any": lambda value: True,
        "null": lambda value: value is None,
        "boolean": lambda value: isinstance(value, bool),
        "string": lambda value: isinstance(value, str),
        "object": lambda value: isinstance(value, dict),
        "array": lambda value: isinstance(value, list),
        "integer": integer,
        "number": number,
        "integer_like": lambda value: integer(value) or integer_text(value),
        "number_like": lambda value: number(value) or number_text(value),
        "boolean_like": lambda value: isinstance(value, bool) or (isinstance(value, str) and value in BOOLEANS),
    }


_TYPES = _types()
_SPOKEN = {"integer_like": "an integer", "number_like": "a number", "null": "null", "any": "anything",
           "boolean_like": "a boolean (true, false, or one of the texts true, on, yes, 1, false, off, no, 0)",
           "string": "a string", "object": "an object", "array": "an array", "integer": "an integer",
           "number": "a number", "boolean": "true or false"}
_CONVERT: dict[str, Callable[[Any], Any]] = {
    "integer_like": int,
    "number_like": float,
    "boolean_like": lambda value: value if isinstance(value, bool) else BOOLEANS[value],
}


def converted(spec: Spec, value: Any) -> Any:
    for kind in spec.types:
        if kind in _CONVERT and value is not None and _TYPES[kind](value):
            return _CONVERT[kind](value)
    return value


def _text_problem(spec: Spec, value: str) -> str | None:
    if spec.min_length is not None and len(value) < spec.min_length:
        return "It must not be empty." if spec.min_length == 1 else _short(spec.min_length)
    if spec.max_length is not None and len(value) > spec.max_length:
        return f"It is too long: at most {spec.max_length} characters." if spec.max_length else "It must be empty."
    if spec.pattern is not None and not expression(spec.pattern).search(value):
        return f"It must match the regular expression {spec.pattern}"
    if spec.format in FORMATS and not FORMATS[spec.format][0](value):
        return f"It must be {FORMATS[spec.format][1]}."
    return None


def _short(least: int) -> str:
    return f"It is too short: at least {least} characters."


def _number_problem(spec: Spec, value: float) -> str | None:
    if spec.min is not None and value < spec.min:
        return f"It is less than the minimum of {spec.min}."
    if spec.max is not None and value > spec.max:
        return f"It is greater than the maximum of {spec.max}."
    if spec.above is not None and value <= spec.above:
        return f"It must be greater than {spec.above}."
    if isinstance(value, int) and abs(value) > MAX_INTEGER and not spec.huge:
        return "It is an integer beyond 64 bits."
    return None


def _size_problem(size: int, least: int | None, most: int | None, what: str) -> str | None:
    if least is not None and size < least:
        return f"It has too few {what}: at least {least}."
    if most is not None and size > most:
        return f"It has too many {what}: at most {most}."
    return None


def _key_problem(spec: Spec, value: dict[str, Any]) -> str | None:
    if spec.any_key and value.keys().isdisjoint(spec.any_key):
        return f"It must have at least one of: {', '.join(spec.any_key)}."
    return None


def _array_problem(spec: Spec, value: list[Any]) -> str | None:
    problem = _size_problem(len(value), spec.min_items, spec.max_items, "items")
    if problem is None and spec.unique_items:
        problem = _repetition(value)
    if problem is None and spec.items is not None:
        wrong = ((index, problem_of(spec.items, item)) for index, item in enumerate(value))
        problem = next((f"Item {index}: {reason}" for index, reason in wrong if reason), None)
    return problem


def _repetition(value: list[Any]) -> str | None:
    seen = set()
    for index, item in enumerate(value):
        text = msgspec.json.encode(item, order="sorted")
        if text in seen:
            return f"Its items must differ from each other: item {index} is there already."
        seen.add(text)
    return None


def alternatives(problems: Iterable[str | None]) -> str | None:
    """One text of what is wrong by each of several shapes; None when one of them fits."""
    wrong = list(problems)
    return None if None in wrong else " Or: ".join(str(reason) for reason in wrong)


def problem_of(spec: Spec, value: Any) -> str | None:
    """What is wrong with ``value`` by ``spec`` alone, and what would be accepted; None when nothing is."""
    kinds = spec.types
    if not any(_TYPES[kind](value) for kind in kinds):
        return f"It must be {' or '.join(_SPOKEN[kind] for kind in kinds)}."
    if spec.allowed and not any(value == choice and isinstance(value, bool) == isinstance(choice, bool)
                                for choice in spec.allowed):
        return f"It must be one of: {', '.join(map(str, spec.allowed))}."
    number, problem = converted(spec, value), None
    if isinstance(value, str):
        problem = _text_problem(spec, value)
    if problem is None and isinstance(number, (int, float)) and not isinstance(number, bool):
        problem = _number_problem(spec, number)
    if problem is None and isinstance(value, list):
        problem = _array_problem(spec, value)
    if problem is None and isinstance(value, dict):
        problem = _size_problem(len(value), spec.min_keys, spec.max_keys, "keys") or _key_problem(spec, value)
    if problem is None and spec.one_of:
        problem = alternatives(problem_of(choice, value) for choice in spec.one_of)
    return problem


def shown(value: Any) -> str:
    """A value for a message: cut where it is long, and without what is inside (a password may be)."""
    if isinstance(value, dict):
        text = f"an object with the keys {', '.join(value)}" if value else "an empty object"
    elif isinstance(value, list):
        text = f"a list of {len(value)} items"
    elif value is None or isinstance(value, bool):
        text = msgspec.json.encode(value).decode()
    else:
        text = str(value) or "''"
    return text if len(text) <= MOST_SHOWN else f"{text[:MOST_SHOWN]}..."
