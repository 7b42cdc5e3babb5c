"""What one value may be: as JSON Schema, which is what judges it, and as what it is converted to."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from nova.web.formats import BOOLEANS, FORMATS
from nova.web.judging import INTEGER_TEXT, MAX_INTEGER, NUMBER_TEXT, Judge, Schema, unsigned

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
        """Its types as a tuple, also where ``type`` is a single name."""
        return (self.type,) if isinstance(self.type, str) else self.type


@functools.cache
def expression(pattern: str) -> re.Pattern[str]:
    """A pattern of the contract, compiled. ``$`` is the very end there; Python's lets one more line end follow."""
    return re.compile(re.sub(r"(?<!\\)\$", r"\\Z", pattern))


_INTEGER, _FRACTION = re.compile(r"-?[0-9]+"), re.compile(r"-?[0-9]+(\.[0-9]+)?")
LONGEST_NUMBER = 40  # characters


def _integer(value: object) -> object:
    """1.0 is an integer by JSON Schema."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _integer_like(value: object) -> object:
    if isinstance(value, str):
        return int(value) if len(value) <= LONGEST_NUMBER and _INTEGER.fullmatch(value) else value
    return _integer(value)


def _number_like(value: object) -> object:
    if isinstance(value, str):
        return float(value) if len(value) <= LONGEST_NUMBER and _FRACTION.fullmatch(value) else value
    return float(value) if isinstance(value, int) and not isinstance(value, bool) else value


def _boolean_like(value: object) -> object:
    return BOOLEANS.get(value, value) if isinstance(value, str) else value


_CONVERT: dict[str, Callable[[Any], Any]] = {"integer": _integer, "integer_like": _integer_like,
                                             "number_like": _number_like, "boolean_like": _boolean_like}


def converted(spec: Spec, value: object) -> object:
    """The number or boolean that a text means where it may; any other value as it is."""
    for kind in spec.types:
        if kind in _CONVERT:
            return _CONVERT[kind](value)
    return value


#: What the kinds of a value are called, where several may stand.
SPOKEN = {"integer_like": "an integer", "number_like": "a number", "string": "a string", "object": "an object",
          "boolean_like": "a boolean (true, false, or one of the texts true, on, yes, 1, false, off, no, 0)",
          "array": "an array", "integer": "an integer", "number": "a number", "boolean": "true or false"}
_TEXT = {"pattern": "pattern", "min_length": "minLength", "max_length": "maxLength"}
_NUMBER = {"min": "minimum", "max": "maximum", "above": "exclusiveMinimum"}
_ARRAY = {"min_items": "minItems", "max_items": "maxItems"}
_OBJECT = {"min_keys": "minProperties", "max_keys": "maxProperties"}


def _rules(spec: Spec, names: Mapping[str, str]) -> Schema:
    return {name: getattr(spec, ours) for ours, name in names.items() if getattr(spec, ours) is not None}


def _text(spec: Spec) -> Schema:
    schema = {"type": "string", **_rules(spec, _TEXT)}
    if spec.format in FORMATS:
        schema["format"] = spec.format
        schema["description"] = FORMATS[spec.format][1]
    return schema


def number(spec: Spec, kind: str) -> Schema:
    """The schema of an ``integer`` or ``number``. Integers are bounded by 64 bits, unless the spec says ``huge``."""
    schema = {"type": kind, **_rules(spec, _NUMBER)}
    if kind == "integer" and not spec.huge:  # of other numbers a body's reader sees to it
        schema.setdefault("maximum", MAX_INTEGER)
        if "exclusiveMinimum" not in schema:
            schema.setdefault("minimum", -MAX_INTEGER)
    return schema


def _number_text(spec: Spec, pattern: str) -> Schema:
    """A number given as text; its bounds hold too, which a schema of a text cannot say: but for the sign."""
    if spec.min is not None and spec.min >= 0:
        pattern = unsigned(pattern)
    return {"type": "string", "pattern": pattern, "maxLength": min(spec.max_length or LONGEST_NUMBER, LONGEST_NUMBER),
            **({"minLength": spec.min_length} if spec.min_length else {})}


def _array(spec: Spec) -> Schema:
    schema: Schema = {"type": "array", **_rules(spec, _ARRAY)}
    if spec.unique_items:
        schema["uniqueItems"] = True
    if spec.items is not None:
        schema["items"] = of_spec(spec.items)
    return schema


def _object(spec: Spec) -> Schema:
    schema: Schema = {"type": "object", **_rules(spec, _OBJECT)}
    if spec.any_key:
        schema["anyOf"] = [{"required": [key]} for key in spec.any_key]
    return schema


def _any(spec: Spec) -> Schema:
    """Every kind of value; a rule holds for its own kind."""
    schema = {**_text(spec), **_rules(spec, {**_NUMBER, **_ARRAY, **_OBJECT})}
    del schema["type"]
    return schema


_KINDS: dict[str, Callable[[Spec], list[Schema]]] = {
    "any": lambda spec: [_any(spec)],
    "null": lambda spec: [{"type": "null"}],
    "boolean": lambda spec: [{"type": "boolean"}],
    "string": lambda spec: [_text(spec)],
    "object": lambda spec: [_object(spec)],
    "array": lambda spec: [_array(spec)],
    "integer": lambda spec: [number(spec, "integer")],
    "number": lambda spec: [number(spec, "number")],
    "integer_like": lambda spec: [number(spec, "integer"), _number_text(spec, INTEGER_TEXT)],
    "number_like": lambda spec: [number(spec, "number"), _number_text(spec, NUMBER_TEXT)],
    "boolean_like": lambda spec: [{"type": "boolean"}, {"enum": [text for text in BOOLEANS if isinstance(text, str)]}],
}


def any_of(choices: list[Schema]) -> Schema:
    """One schema as it is, several as their ``anyOf``."""
    return choices[0] if len(choices) == 1 else {"anyOf": choices}


def of_spec(spec: Spec) -> Schema:
    """What one value may be."""
    if spec.allowed:
        return {"enum": list(spec.allowed)}
    schema = any_of([schema for kind in spec.types for schema in _KINDS[kind](spec)])
    if "anyOf" in schema and "type" not in schema:
        schema["description"] = " or ".join(SPOKEN.get(kind, kind) for kind in spec.types)
    if spec.one_of:
        return {"allOf": [schema, any_of([of_spec(choice) for choice in spec.one_of])]}
    return schema


@functools.cache
def judge(spec: Spec) -> Judge:
    """The compiled schema of a spec; made once for each spec."""
    return Judge.of(of_spec(spec))


def problem_of(spec: Spec, value: object) -> str | None:
    """What is wrong with ``value`` by ``spec`` alone, and what would be accepted; None when nothing is."""
    problem = judge(spec).problem(converted(spec, value))
    if problem is None:
        return None
    return f"Item {problem.path[0]}: {problem.text}" if problem.path else problem.text


def shown(value: object) -> str:
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
