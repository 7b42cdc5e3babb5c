"""Specification of one value: its JSON Schema, which validates it, and its conversion."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypedDict, cast

import msgspec

from nova.model.base import JsonValue
from nova.web.formats import BOOLEANS, FORMATS
from nova.web.validation import INTEGER_TEXT, MAX_INTEGER, NUMBER_TEXT, Schema, SchemaValidator, unsigned

MOST_SHOWN = 200  # characters of an input value in a message


class Rules(TypedDict, total=False):
    """The fields of a :class:`Spec`, except its type."""

    allowed: tuple[Any, ...]
    pattern: str | None
    format: str | None
    min: float | None
    max: float | None
    above: float | None
    min_length: int | None
    max_length: int | None
    min_items: int | None
    max_items: int | None
    unique_items: bool
    min_keys: int | None
    max_keys: int | None
    any_key: tuple[str, ...]
    items: Spec | None
    one_of: tuple[Spec, ...]
    huge: bool


@dataclass(frozen=True, kw_only=True)
class Spec:
    """The valid values of one field. ``type``: a JSON type's name or several, ``any``, ``boolean_like``,
    ``integer_like`` and ``number_like`` (numbers, or text of them; the result is a number). ``one_of``: further
    specifications, one of which must match.
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
    any_key: tuple[str, ...] = ()  # at least one of these keys
    items: Spec | None = None
    one_of: tuple[Spec, ...] = ()
    huge: bool = False  # integers beyond 64 bits are accepted: the code that uses them limits them

    @property
    def types(self) -> tuple[str, ...]:
        """Types as a tuple, also if ``type`` is a single name."""
        return (self.type,) if isinstance(self.type, str) else self.type


@functools.cache
def expression(pattern: str) -> re.Pattern[str]:
    """Compile a pattern of the contract. ``$`` means the very end there; Python's ``$`` also matches before a line
    end."""
    return re.compile(re.sub(r"(?<!\\)\$", r"\\Z", pattern))


_INTEGER, _FRACTION = re.compile(r"-?[0-9]+"), re.compile(r"-?[0-9]+(\.[0-9]+)?")
LONGEST_NUMBER = 40  # characters


def _integer(value: JsonValue) -> JsonValue:
    """Return 1.0 as an integer, as JSON Schema defines it."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _integer_like(value: JsonValue) -> JsonValue:
    if isinstance(value, str):
        return int(value) if len(value) <= LONGEST_NUMBER and _INTEGER.fullmatch(value) else value
    return _integer(value)


def _number_like(value: JsonValue) -> JsonValue:
    if isinstance(value, str):
        return float(value) if len(value) <= LONGEST_NUMBER and _FRACTION.fullmatch(value) else value
    return float(value) if isinstance(value, int) and not isinstance(value, bool) else value


def _boolean_like(value: JsonValue) -> JsonValue:
    return BOOLEANS.get(value, value) if isinstance(value, str) else value


_CONVERT: dict[str, Callable[[JsonValue], JsonValue]] = {"integer": _integer, "integer_like": _integer_like,
                                             "number_like": _number_like, "boolean_like": _boolean_like}


def converted(spec: Spec, value: JsonValue) -> JsonValue:
    """Return the number or boolean of a text, if the spec permits it; any other value unchanged."""
    for kind in spec.types:
        if kind in _CONVERT:
            return _CONVERT[kind](value)
    return value


#: Names of a value's types, for messages about several types.
SPOKEN = {"integer_like": "an integer", "number_like": "a number", "string": "a string", "object": "an object",
          "boolean_like": "a boolean (true, false, or one of the texts true, on, yes, 1, false, off, no, 0)",
          "array": "an array", "integer": "an integer", "number": "a number", "boolean": "true or false"}
_TEXT = {"pattern": "pattern", "min_length": "minLength", "max_length": "maxLength"}
_NUMBER = {"min": "minimum", "max": "maximum", "above": "exclusiveMinimum"}
_ARRAY = {"min_items": "minItems", "max_items": "maxItems"}
_OBJECT = {"min_keys": "minProperties", "max_keys": "maxProperties"}


def _rules(spec: Spec, names: Mapping[str, str]) -> Schema:
    found = {name: getattr(spec, ours) for ours, name in names.items() if getattr(spec, ours) is not None}
    return cast(Schema, found)  # the tables have its keywords


def _text(spec: Spec) -> Schema:
    schema: Schema = {"type": "string", **_rules(spec, _TEXT)}
    if spec.format in FORMATS:
        schema["format"] = spec.format
        schema["description"] = FORMATS[spec.format][1]
    return schema


def number(spec: Spec, kind: str) -> Schema:
    """Return the schema of an ``integer`` or ``number``. Integers are limited to 64 bits, unless the spec has
    ``huge``."""
    schema: Schema = {"type": kind, **_rules(spec, _NUMBER)}
    if kind == "integer" and not spec.huge:  # the JSON decoder limits other numbers
        schema.setdefault("maximum", MAX_INTEGER)
        if "exclusiveMinimum" not in schema:
            schema.setdefault("minimum", -MAX_INTEGER)
    return schema


def _number_text(spec: Spec, pattern: str) -> Schema:
    """Return the schema of a number in text form. Bounds apply as well, but a schema of a text can only express the
    sign."""
    if spec.min is not None and spec.min >= 0:
        pattern = unsigned(pattern)
    schema: Schema = {"type": "string", "pattern": pattern,
                      "maxLength": min(spec.max_length or LONGEST_NUMBER, LONGEST_NUMBER)}
    if spec.min_length:
        schema["minLength"] = spec.min_length
    return schema


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
    """Return the schema for any type; each rule applies to its own type."""
    schema: Schema = {**_text(spec), **_rules(spec, {**_NUMBER, **_ARRAY, **_OBJECT})}
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
    """Return a single schema unchanged, several as their ``anyOf``."""
    return choices[0] if len(choices) == 1 else {"anyOf": choices}


def of_spec(spec: Spec) -> Schema:
    """Return the JSON Schema of one value."""
    if spec.allowed:
        return {"enum": list(spec.allowed)}
    schema = any_of([schema for kind in spec.types for schema in _KINDS[kind](spec)])
    if "anyOf" in schema and "type" not in schema:
        schema["description"] = " or ".join(SPOKEN.get(kind, kind) for kind in spec.types)
    if spec.one_of:
        return {"allOf": [schema, any_of([of_spec(choice) for choice in spec.one_of])]}
    return schema


@functools.cache
def validator_of(spec: Spec) -> SchemaValidator:
    """Return the compiled schema of a spec; created once for each spec."""
    return SchemaValidator.of(of_spec(spec))


def problem_of(spec: Spec, value: JsonValue) -> str | None:
    """Return the fault of ``value`` by ``spec`` alone, with the valid values; None if it is valid."""
    problem = validator_of(spec).problem(converted(spec, value))
    if problem is None:
        return None
    return f"Item {problem.path[0]}: {problem.text}" if problem.path else problem.text


def shown(value: object) -> str:
    """Return a value for a message: truncated if long, and without its contents (which may include a password)."""
    if isinstance(value, dict):
        text = f"an object with the keys {', '.join(value)}" if value else "an empty object"
    elif isinstance(value, list):
        text = f"a list of {len(value)} items"
    elif value is None or isinstance(value, bool):
        text = msgspec.json.encode(value).decode()
    else:
        text = str(value) or "''"
    return text if len(text) <= MOST_SHOWN else f"{text[:MOST_SHOWN]}..."
