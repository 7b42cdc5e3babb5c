"""Our tables of bodies, queries and answers as JSON Schema (2020-12, which OpenAPI 3.1 has), one version at a time."""

from __future__ import annotations

import datetime
import enum
import functools
import inspect
import types
import typing
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from nova.api.view import Free, Out, View
from nova.web.formats import BOOLEANS, FORMATS
from nova.web.schema import REFUSE, Node, Param
from nova.web.specs import MAX_INTEGER, Spec

Schema = dict[str, Any]

#: Formats that JSON Schema knows by the same name; of the others the description says what is accepted.
KNOWN_FORMATS = ("uuid", "ipv4", "ipv6", "date-time", "regex")
INTEGER_TEXT, NUMBER_TEXT = r"^-?[0-9]+$", r"^-?[0-9]+(\.[0-9]+)?$"
_TEXT = {"pattern": "pattern", "min_length": "minLength", "max_length": "maxLength"}
_NUMBER = {"min": "minimum", "max": "maximum", "above": "exclusiveMinimum"}
_ARRAY = {"min_items": "minItems", "max_items": "maxItems"}
_OBJECT = {"min_keys": "minProperties", "max_keys": "maxProperties"}


def _rules(spec: Spec, names: Mapping[str, str]) -> Schema:
    return {name: getattr(spec, ours) for ours, name in names.items() if getattr(spec, ours) is not None}


def _text(spec: Spec) -> Schema:
    schema = {"type": "string", **_rules(spec, _TEXT)}
    if spec.format in KNOWN_FORMATS:
        schema["format"] = spec.format
    elif spec.format in FORMATS:
        schema["description"] = FORMATS[spec.format][1]
    return schema


def _number(spec: Spec, kind: str) -> Schema:
    schema = {"type": kind, **_rules(spec, _NUMBER)}
    if kind == "integer" and not spec.huge:
        schema.setdefault("maximum", MAX_INTEGER)
        if "exclusiveMinimum" not in schema:
            schema.setdefault("minimum", -MAX_INTEGER)
    return schema


def _number_text(spec: Spec, pattern: str) -> Schema:
    """A number given as text; its bounds hold too, which a schema of a text cannot say: but for the sign."""
    if spec.min is not None and spec.min >= 0:
        pattern = pattern.replace("-?", "", 1)
    return {"type": "string", "pattern": pattern, "maxLength": min(spec.max_length or 40, 40),
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
    "integer": lambda spec: [_number(spec, "integer")],
    "number": lambda spec: [_number(spec, "number")],
    "integer_like": lambda spec: [_number(spec, "integer"), _number_text(spec, INTEGER_TEXT)],
    "number_like": lambda spec: [_number(spec, "number"), _number_text(spec, NUMBER_TEXT)],
    "boolean_like": lambda spec: [{"type": "boolean"}, {"enum": [text for text in BOOLEANS if isinstance(text, str)]}],
}


def any_of(choices: list[Schema]) -> Schema:
    return choices[0] if len(choices) == 1 else {"anyOf": choices}


def of_spec(spec: Spec) -> Schema:
    """What one value may be."""
    if spec.allowed:
        return {"enum": list(spec.allowed)}
    schema = any_of([schema for kind in spec.types for schema in _KINDS[kind](spec)])
    if spec.one_of:
        return {"allOf": [schema, any_of([of_spec(choice) for choice in spec.one_of])]}
    return schema


def of_node(node: Node, lenient: bool = False) -> Schema:
    """A compiled table of a body. ``lenient``: as /v2 takes it, where unknown keys are dropped."""
    schema = of_spec(node.spec)
    for place in [schema, *schema.get("anyOf", ()), *schema.get("allOf", ())]:
        if place.get("type") == "object":
            place.update(_keys(node, lenient))
        elif place.get("type") == "array" and node.item is not None:
            place["items"] = of_node(node.item, lenient)
    return any_of([schema, *(of_spec(other) for other in node.or_)])


def _keys(node: Node, lenient: bool) -> Schema:
    found: Schema = {}
    if node.keys:
        found["properties"] = {name: of_node(child, lenient) for name, child in node.keys.items()}
    if required := [name for name, child in node.keys.items() if child.required]:
        found["required"] = required
    if node.patterns:
        found["patternProperties"] = {pattern.pattern.replace("\\Z", "$"): of_node(child, lenient)
                                      for pattern, child in node.patterns}
    if node.unknown == REFUSE and not lenient:
        found["additionalProperties"] = False
    return found


def of_param(entry: Param) -> Schema:
    """A query parameter's schema. Numbers stand in a query as text, so that one form of them is enough."""
    spec = entry.spec
    if "integer_like" in spec.types and not spec.allowed:
        schema = _number(spec, "integer")
    elif "number_like" in spec.types and not spec.allowed:
        schema = _number(spec, "number")
    else:
        schema = of_spec(spec)
    return {"type": "array", "items": schema} if entry.repeat else schema


# -- answers


def of_shape(shape: Any, version: int) -> Schema:
    """What ``nova.api.view.answers`` says: a View, a [shape], a Free(shape), {key: shape}, a type's name or names."""
    if isinstance(shape, View):
        return of_view(shape, version)
    if isinstance(shape, list):
        return {"type": "array", "items": of_shape(shape[0], version)}
    if isinstance(shape, Free):
        return {"type": "object", "additionalProperties": of_shape(shape.values, version)}
    if isinstance(shape, dict):
        return {"type": "object", "properties": {key.removesuffix("?"): of_shape(value, version)
                                                 for key, value in shape.items()},
                "required": [key for key in shape if not key.endswith("?")]}
    if isinstance(shape, str):
        return {} if shape == "any" else {"type": shape}
    if isinstance(shape, tuple):
        return any_of([of_shape(choice, version) for choice in shape])
    return of_type(shape)


def of_view(view: View, version: int) -> Schema:
    """The object that a view shows at a version; fields that depend on policy or on the value are not required."""
    properties: dict[str, Schema] = {}
    required = []
    for entry in view.held(version):
        schema = of_field(entry, view.of, version)
        if entry.name in properties and properties[entry.name] != schema:
            schema = any_of([properties[entry.name], schema])
        properties[entry.name] = schema
        if not entry.optional and entry.flag is None:
            required.append(entry.name)
    return {"type": "object", "properties": properties, **({"required": required} if required else {})}


def of_field(entry: Out, of: type | None, version: int) -> Schema:
    """By what the row says, else by the attribute's type in the model, else by what the getter says it returns."""
    if entry.type is not None:
        return of_shape(entry.type, version)
    if isinstance(entry.source, str):
        return of_type(_attribute(of, entry.source)) if of is not None else {}
    return of_type(_returned(entry.source))


def _attribute(of: type, path: str) -> Any:
    """What a class says of an attribute, or of a property."""
    found: Any = of
    for name in path.split("."):
        member = inspect.getattr_static(found, name, None)
        found = _returned(member.fget) if isinstance(member, property) else _hints(found).get(name, Any)
    return found


@functools.cache
def _hints(of: Any) -> dict[str, Any]:
    return typing.get_type_hints(of) if isinstance(of, type) else {}


def _returned(getter: Any) -> Any:
    try:
        return typing.get_type_hints(getter).get("return", Any)
    except NameError:  # a type that is imported for checkers only
        return {"str": str, "int": int, "bool": bool, "str | None": str | None, "list[dict[str, str]]": list[
            dict[str, str]], "dict[str, Any]": dict[str, Any]}.get(getter.__annotations__.get("return"), Any)


_PLAIN: dict[Any, Schema] = {str: {"type": "string"}, int: {"type": "integer"}, float: {"type": "number"},
                             bool: {"type": "boolean"}, type(None): {"type": "null"}, Any: {},
                             datetime.datetime: {"type": "string"}}


def of_type(hint: Any) -> Schema:
    """A type of the model, as JSON has it."""
    if hint in _PLAIN:
        return dict(_PLAIN[hint])
    origin, inner = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        return any_of([of_type(one) for one in inner])
    if origin is typing.Annotated:
        return of_type(inner[0])
    if origin is typing.Literal:
        return {"enum": list(inner)}
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return {"type": "object", "additionalProperties": of_type(inner[1])}
    if origin in (list, tuple, frozenset):
        return {"type": "array", "items": of_type(inner[0])}
    if isinstance(hint, type) and issubclass(hint, enum.Enum):
        return {"type": "integer"} if issubclass(hint, int) else {"type": "string"}
    if isinstance(hint, type) and issubclass(hint, msgspec.Struct):
        return {"type": "object"}
    return {}
