"""Responses of operations as JSON Schema (2020-12, the version of OpenAPI 3.1), for one API version."""

from __future__ import annotations

import contextlib
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
from nova.web.specs import any_of
from nova.web.validation import Schema


def of_shape(shape: object, version: int) -> Schema:
    """Return the schema of a shape of ``nova.api.view.answers``: a View, a [shape], a Free(shape), {key: shape}, or
    type names."""
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
    """Return the schema of a view at a version; fields that depend on policy or on the value are not required."""
    properties: dict[str, Schema] = {}
    required = []
    for entry in view.held(version):
        schema = of_field(entry, view.of, version)
        if entry.name in properties and properties[entry.name] != schema:
            schema = any_of([properties[entry.name], schema])
        properties[entry.name] = schema
        if not entry.optional and entry.flag is None:
            required.append(entry.name)
    shown: Schema = {"type": "object", "properties": properties}
    if required:
        shown["required"] = required
    return shown


def of_field(entry: Out, of: type | None, version: int) -> Schema:
    """Return the schema of a field: from its row, else from the attribute's type in the model, else from the getter's
    annotation."""
    if entry.type is not None:
        return of_shape(entry.type, version)
    if isinstance(entry.source, str):
        return of_type(_attribute(of, entry.source)) if of is not None else {}
    return of_type(_returned(entry.source))


def _attribute(of: type, path: str) -> object:
    """Return a class's annotation of an attribute or property."""
    found: Any = of
    for name in path.split("."):
        member = inspect.getattr_static(found, name, None)
        found = _returned(member.fget) if isinstance(member, property) else _hints(found).get(name, Any)
    return found


@functools.cache
def _hints(of: object) -> dict[str, object]:
    return typing.get_type_hints(of) if isinstance(of, type) else {}


def _returned(getter: Callable[..., object] | None) -> object:
    with contextlib.suppress(NameError):  # a type imported only for type checkers
        return typing.get_type_hints(getter).get("return", Any)
    return _BY_NAME.get(getattr(getter, "__annotations__", {}).get("return", ""), Any)


#: Annotations that do not need the names imported only for type checkers.
_BY_NAME: dict[str, object] = {"str": str, "int": int, "bool": bool, "str | None": str | None,
                               "list[dict[str, str]]": list[dict[str, str]], "dict[str, Any]": dict[str, Any]}
_PLAIN: dict[Any, Schema] = {str: {"type": "string"}, int: {"type": "integer"}, float: {"type": "number"},
                             bool: {"type": "boolean"}, type(None): {"type": "null"}, Any: {},
                             datetime.datetime: {"type": "string"}}


def of_type(hint: object) -> Schema:
    """Return the JSON schema of a type of the model."""
    if hint in _PLAIN:
        return {**_PLAIN[hint]}
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
