"""The shapes of contracts and wire values, as JSON that people can read and tests can compare.

Golden files: ``contracts/NAME-VERSION.json`` describes the newest minor version of a contract with every type that it
reaches, and what was added to them when; ``contracts/older.json`` has the minor versions before it as hashes
(``minors.py``). ``values/NAME/N.json`` is one example of a value in its Nth shape. Old ones stay: peers of that age are
still spoken to. ``regenerate.py`` writes them.
"""

from __future__ import annotations

import collections.abc
import datetime
import enum
import functools
import importlib
import json
import pathlib
import pkgutil
import re
import types
import typing
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

import nova.model
import nova.rpc.contracts
from nova.context import RequestContext
from nova.model.base import Value
from nova.rpc.interface import Contract, parse_version

HERE = pathlib.Path(__file__).parent
CONTRACTS, VALUES, OLDER = HERE / "contracts", HERE / "values", "older.json"
FIELD = re.compile(r'\{\s+("required": \w+),\s+("type": "[^"]*")\s+\}')
Shape = dict[str, Any]


# what there is

def _modules(package: types.ModuleType) -> Iterator[types.ModuleType]:
    for found in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
        yield importlib.import_module(found.name)


def _classes(package: types.ModuleType, base: type) -> list[Any]:
    found = {cls.__name__: cls for module in _modules(package) for cls in vars(module).values()
             if isinstance(cls, type) and issubclass(cls, base) and cls is not base
             and cls.__module__ == module.__name__}
    return [found[name] for name in sorted(found)]


def contracts() -> list[type[Contract]]:
    return _classes(nova.rpc.contracts, Contract)


def values() -> list[type[msgspec.Struct]]:
    """Every wire value, and the context that travels with each call."""
    return [*_classes(nova.model, Value), RequestContext]


# types as text

def text_of(kind: Any) -> str:
    """A type's name, the same for the same thing on the wire."""
    if kind is None or kind is type(None):
        return "null"
    if kind is Any or kind is object:
        return "any"
    if isinstance(kind, typing.NewType):
        return text_of(kind.__supertype__)
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin in (typing.Union, types.UnionType):
        return " | ".join(sorted(text_of(part) for part in arguments))
    if origin is tuple:
        return f"[{', '.join('...' if part is ... else text_of(part) for part in arguments)}]"
    if origin in (collections.abc.Mapping, dict):
        return f"{{{text_of(arguments[0])}: {text_of(arguments[1])}}}"
    if origin is typing.Literal:
        return " | ".join(sorted(map(repr, arguments)))
    if isinstance(kind, type):
        return kind.__name__
    raise TypeError(f"{kind!r} has no place on the wire")


def _named_in(kind: Any) -> Iterator[type]:
    """Structs and enums that a type mentions."""
    if isinstance(kind, type) and issubclass(kind, (msgspec.Struct, enum.Enum)):
        yield kind
    for part in typing.get_args(kind):
        yield from _named_in(part)


def shape_of_type(kind: type) -> Shape:
    """A struct's fields (type; whether a sender may leave it out), or an enum's members."""
    if issubclass(kind, enum.Enum):
        return {"members": {member.name: member.value for member in kind}}
    return {"fields": {field.encode_name: {"type": text_of(field.type), "required": field.required}
                       for field in msgspec.structs.fields(kind)}}


def reached(kinds: list[Any]) -> dict[str, type]:
    """Every struct and enum that these types lead to, by name."""
    found: dict[str, type] = {}
    waiting = [named for kind in kinds for named in _named_in(kind)]
    while waiting:
        kind = waiting.pop()
        if found.setdefault(kind.__name__, kind) is not kind:
            raise TypeError(f"two types are called {kind.__name__}")
        if issubclass(kind, msgspec.Struct):
            waiting += [named for field in msgspec.structs.fields(kind) for named in _named_in(field.type)
                        if named.__name__ not in found]
    return found


def shape_of_contract(contract: type[Contract]) -> Shape:
    """All of a contract that a peer can notice."""
    methods, kinds = {}, []
    for name, method in sorted(contract.methods.items()):
        arguments = msgspec.structs.fields(method.arguments)
        kinds += [*(field.type for field in arguments), method.result]
        methods[name] = {
            "since": method.since, "timeout": method.timeout.value, "wants_answer": method.wants_answer,
            "fanout": method.fanout, "result": text_of(method.result),
            "arguments": {field.name: {"type": text_of(field.type), "required": field.required}
                          for field in arguments}}
    return {"topic": contract.topic, "version": contract.version, "addressed_by": contract.addressed_by,
            "methods": methods,
            "types": {name: shape_of_type(kind) for name, kind in sorted(reached(kinds).items())}}


# what changed

def differences(old: Any, new: Any, path: str = "") -> list[str]:
    """Where two shapes differ, one line each."""
    if isinstance(old, dict) and isinstance(new, dict):
        return [line for key in sorted({*old, *new}, key=str)
                for line in _difference(old, new, key, f"{path}/{key}")]
    return [] if old == new else [f"{path}: {json.dumps(old)} became {json.dumps(new)}"]


def _difference(old: Shape, new: Shape, key: str, path: str) -> list[str]:
    if key not in new:
        return [f"{path}: removed"]
    return [f"{path}: added"] if key not in old else differences(old[key], new[key], path)


def breaks(old: Shape, new: Shape) -> list[str]:
    """What a peer of ``old``'s version would stumble over; such a change needs a new major version."""
    found = [line for key in ("topic", "addressed_by") for line in differences(old[key], new[key], f"/{key}")]
    for name, method in old["methods"].items():
        now = new["methods"].get(name)
        path = f"/methods/{name}"
        if now is None:
            found.append(f"{path}: removed")
            continue
        for key in ("since", "wants_answer", "fanout", "result"):
            found += differences(method[key], now[key], f"{path}/{key}")
        found += _broken_fields(method["arguments"], now["arguments"], path)
    for name in new["methods"].keys() - old["methods"].keys():
        if parse_version(new["methods"][name]["since"]) <= parse_version(old["version"]):
            found.append(f"/methods/{name}: is new, but says since={new['methods'][name]['since']}")
    for name, kind in old["types"].items():
        now = new["types"].get(name, kind)
        found += _broken_fields(kind.get("fields", {}), now.get("fields", {}), f"/types/{name}")
        found += [line for line in differences(kind.get("members", {}), now.get("members", {}), f"/types/{name}")
                  if not line.endswith(": added")]
    return found


def _broken_fields(old: Shape, new: Shape, path: str) -> list[str]:
    """Fields may be added where a sender may leave them out; nothing else."""
    return [line for line in differences(old, new, path) if not line.endswith(": added")] + [
        f"{path}/{name}: added, and required" for name in new.keys() - old.keys() if new[name]["required"]]


# examples

@functools.cache
def example(kind: type[msgspec.Struct]) -> Any:
    """A value of this type in which every field differs from its default, the same at each call."""
    fields = {}
    for field in msgspec.structs.fields(kind):
        default = field.default if field.default is not msgspec.NODEFAULT else None
        fields[field.name] = _made(field.type, field.encode_name, default)
    return kind(**fields)


def _made(kind: Any, name: str, default: Any = None) -> Any:
    if isinstance(kind, typing.NewType):
        return _made(kind.__supertype__, name, default)
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin in (typing.Union, types.UnionType):
        return _made(next(part for part in arguments if part is not type(None)), name, default)
    if origin is tuple:
        parts = arguments[:1] if arguments[-1] is ... else arguments
        return tuple(_made(part, name) for part in parts)
    if origin in (collections.abc.Mapping, dict):
        return {_made(arguments[0], "key"): _made(arguments[1], "value")}
    if origin is typing.Literal:
        return next(choice for choice in arguments if choice != default)
    if kind in _SIMPLE:
        return _SIMPLE[kind](name, default)
    if issubclass(kind, enum.Enum):
        return next(member for member in kind if member != default and member.name != "UNKNOWN")
    if issubclass(kind, msgspec.Struct):
        return example(kind)
    raise TypeError(f"no example of {kind!r} (field {name})")


_SIMPLE: Mapping[Any, Any] = {
    str: lambda name, default: f"a {name}",
    int: lambda name, default: len(name) + (len(name) == default),
    float: lambda name, default: len(name) + 0.5,
    bool: lambda name, default: not default,
    bytes: lambda name, default: name.encode(),
    datetime.datetime: lambda name, default: datetime.datetime(2025, 1, 2, 3, 4, 5, 678901),
    object: lambda name, default: f"any {name}",
    Any: lambda name, default: f"any {name}",
}


# files

def to_json(shape: Any) -> str:
    """A line for each thing that can change: a field's type and whether it is required are on one."""
    text = json.dumps(shape, indent=1, sort_keys=True) + "\n"
    return FIELD.sub(r'{\1, \2}', text)


def contract_files(name: str) -> dict[str, pathlib.Path]:
    """Golden files of one contract by version, one for each major version, the oldest first."""
    found = {path.stem.rpartition("-")[2]: path for path in CONTRACTS.glob(f"{name}-*.json")}
    return {version: found[version] for version in sorted(found, key=parse_version)}


def read_contract(path: pathlib.Path) -> Shape:
    shape: Shape = json.loads(path.read_text())
    return shape


def older() -> dict[str, dict[str, dict[str, str]]]:
    """Contract -> older minor version -> method -> hash of its shape."""
    path = CONTRACTS / OLDER
    return json.loads(path.read_text()) if path.exists() else {}


def value_files(name: str) -> list[pathlib.Path]:
    """Golden files of one value, the oldest first."""
    return sorted((VALUES / name).glob("*.json"), key=lambda path: int(path.stem))
