"""Validation of values against a JSON Schema with the library jsonschema-rs, with nova's own error messages."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, TypedDict

import msgspec
from jsonschema_rs import Draft202012Validator, ValidationError

from nova.web.formats import FORMATS

if TYPE_CHECKING:
    from jsonschema_rs import ValidationErrorKind

    Bound = ValidationErrorKind.Minimum | ValidationErrorKind.Maximum


class Schema(TypedDict, total=False):
    """A JSON Schema (draft 2020-12), with the keywords of nova's schemas."""

    type: str
    description: str
    enum: list[object]
    format: str
    pattern: str
    minLength: int
    maxLength: int
    minimum: float
    maximum: float
    exclusiveMinimum: float
    items: Schema
    minItems: int
    maxItems: int
    uniqueItems: bool
    properties: dict[str, Schema]
    patternProperties: dict[str, Schema]
    additionalProperties: bool | Schema
    required: list[str]
    minProperties: int
    maxProperties: int
    anyOf: list[Schema]
    allOf: list[Schema]
    oneOf: list[Schema]


Path = tuple[str | int, ...]

MAX_INTEGER = 2**63 - 1  # the maximum of databases
_UNEXPECTED = ("additionalProperties", "falseSchema")  # the second: for an object that may have no keys
_SPOKEN = {"null": "null", "string": "a string", "object": "an object", "array": "an array", "integer": "an integer",
           "number": "a number", "boolean": "true or false"}


class Problem(NamedTuple):
    """A validation error. ``path``: keys and indexes to the value; ``unexpected``: it has an unknown key."""

    path: Path
    text: str
    unexpected: bool = False


def _repetition(kind: object, value: list[object]) -> str:
    texts = [msgspec.json.encode(item, order="sorted") for item in value]
    first: dict[bytes, int] = {}
    again = next((index for index, text in enumerate(texts) if first.setdefault(text, index) != index), len(texts) - 1)
    return f"Its items must differ from each other: item {again} is a duplicate."


def _least(kind: Bound, value: object) -> str:
    return _most(kind, value) if kind.limit == -MAX_INTEGER else f"It is less than the minimum of {kind.limit}."


def _most(kind: Bound, value: object) -> str:
    if kind.limit in (MAX_INTEGER, -MAX_INTEGER):
        return "It is an integer beyond 64 bits."
    return f"It is greater than the maximum of {kind.limit}."


#: Patterns in user-visible messages, with a description in plain language.
IN_WORDS = {r"^(?! )[a-zA-Z0-9. _-]+(?<! )$":
            "It may have letters (a to z), digits, '.', '-', '_', and blanks between them, and nothing else."}
#: The library's error kind, by the keyword's name -> nova's message. ``kind`` has the keyword's own value.
WORDS: dict[str, Callable[[Any, Any], str]] = {
    "type": lambda kind, value: f"It must be {' or '.join(_SPOKEN[name] for name in kind.types)}.",
    "enum": lambda kind, value: f"It must be one of: {', '.join(map(str, kind.options))}.",
    "format": lambda kind, value: f"It must be {FORMATS[kind.format][1]}.",
    "pattern": lambda kind, value: IN_WORDS.get(kind.pattern, f"It must match the regular expression {kind.pattern}"),
    "minLength": lambda kind, value: ("It must not be empty." if kind.limit == 1
                                      else f"It is too short: at least {kind.limit} characters."),
    "maxLength": lambda kind, value: (f"It is too long: at most {kind.limit} characters." if kind.limit
                                      else "It must be empty."),
    "minimum": _least,
    "maximum": _most,
    "exclusiveMinimum": lambda kind, value: f"It must be greater than {kind.limit}.",
    "minItems": lambda kind, value: f"It has too few items: at least {kind.limit}.",
    "maxItems": lambda kind, value: f"It has too many items: at most {kind.limit}.",
    "uniqueItems": _repetition,
    "minProperties": lambda kind, value: f"It has too few keys: at least {kind.limit}.",
    "maxProperties": lambda kind, value: f"It has too many keys: at most {kind.limit}.",
    "required": lambda kind, value: f"'{kind.property}' is a required property.",
    **dict.fromkeys(_UNEXPECTED, lambda kind, value: "Additional properties are not allowed."),
}
INTEGER_TEXT, NUMBER_TEXT = r"^-?[0-9]+$", r"^-?[0-9]+(\.[0-9]+)?$"  # numbers given as texts


def unsigned(pattern: str) -> str:
    """The pattern of the same numbers without a sign."""
    return pattern.replace("-?", "", 1)


_NUMBERS = frozenset(each for pattern in (INTEGER_TEXT, NUMBER_TEXT) for each in (pattern, unsigned(pattern)))


def _is_another_kind(kind: ValidationErrorKind) -> bool:
    """Return whether such a failed alternative means another type than the value's. A text that fails the pattern of
    its own type has that type, and the message must show its pattern."""
    return kind.name in ("type", "enum") or getattr(kind, "pattern", None) in _NUMBERS


@dataclass(frozen=True)
class SchemaValidator:
    """A compiled schema. Alternatives of an ``anyOf`` with a ``description`` are types of one value."""

    schema: Schema
    _validator: Draft202012Validator

    @classmethod
    def of(cls, schema: Schema) -> SchemaValidator:
        """Compile the schema (JSON Schema, draft 2020-12, with checks of nova's formats)."""
        return cls(schema, Draft202012Validator(
            {**schema}, formats={name: check for name, (check, _) in FORMATS.items()}, validate_formats=True))

    def problem(self, value: object) -> Problem | None:
        """Return the first fault of ``value``; None if it is valid."""
        try:
            self._validator.validate(value)
        except ValidationError as error:
            return self._described(error)
        return None

    def _described(self, error: ValidationError) -> Problem:
        if error.kind.name == "anyOf":
            return self._alternatives(error)
        name = error.kind.name
        return Problem(tuple(error.instance_path), WORDS[name](error.kind, error.instance), name in _UNEXPECTED)

    def _alternatives(self, error: ValidationError) -> Problem:
        kind: Any = error.kind
        path, choices = tuple(error.instance_path), kind.context
        if all(choice[0].kind.name == "required" for choice in choices) and not self._kinds(error):
            keys = ", ".join(choice[0].kind.property for choice in choices)
            return Problem(path, f"It must have at least one of: {keys}.")
        fitting = [choice for choice in choices if not any(
            _is_another_kind(other.kind) and tuple(other.instance_path) == path for other in choice)]
        if kinds := self._kinds(error):
            return self._first(fitting[0]) if fitting else Problem(path, f"It must be {kinds}.")
        if len(fitting) == 1 and any(len(one.instance_path) > len(path) for one in fitting[0]):
            return self._first(fitting[0])  # the value matches this one alternative, but a part of it is wrong
        texts = dict.fromkeys(self._first(choice).text for choice in choices)
        return Problem(path, " Or: ".join(texts))

    def _first(self, errors: Iterable[ValidationError]) -> Problem:
        return self._described(min(errors, key=lambda error: len(error.instance_path)))

    def _kinds(self, error: ValidationError) -> str | None:
        """Return the description next to an ``anyOf``."""
        place: Any = self.schema
        for step in error.schema_path[:-1]:
            place = place[step]
        found: str | None = place.get("description")
        return found
