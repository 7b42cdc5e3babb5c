"""What a contract's older minor versions were, out of the newest one: as hashes, one a method.

A minor version only adds: methods, which say since when, and arguments, fields and members, which the golden file of
the newest one lists under ``added`` with the version that brought them. Without what came later it is the older version
again, so that a hash of each method (with all types that it reaches) is enough to know that nobody changed it.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator
from typing import Any

from nova.rpc.interface import parse_version
from tests.golden.shapes import Shape, differences

NAMES = re.compile(r"[A-Za-z_]\w*")
SEEN_BY_PEERS = ("since", "wants_answer", "fanout", "result", "arguments")  # a time-out is its client's own


def added(old: Shape, new: Shape) -> dict[str, str]:
    """What ``new`` adds to methods and types that ``old`` has, as path -> the new version."""
    kept = {path: version for path, version in old.get("added", {}).items() if _at(new, path) is not None}
    found = [line.removesuffix(": added").removeprefix("/") for part in ("methods", "types")
             for line in differences(old[part], new[part], f"/{part}") if line.endswith(": added")]
    return {**{path: new["version"] for path in found if path.count("/") > 1}, **kept}


def hashes(shape: Shape, version: str) -> dict[str, str]:
    """Method -> hash, of a contract as it was at this minor version."""
    then = as_of(shape, version)
    return {name: _hash(then, name) for name in then["methods"]}


def as_of(shape: Shape, version: str) -> Shape:
    """Without what was added after ``version``."""
    then: Shape = json.loads(json.dumps(shape))
    for path, since in shape.get("added", {}).items():
        if parse_version(since) > parse_version(version):
            *parents, last = path.split("/")
            del _at(then, "/".join(parents))[last]
    then["methods"] = {name: method for name, method in then["methods"].items()
                       if parse_version(method["since"]) <= parse_version(version)}
    return then


def differing(old: dict[str, str], new: dict[str, str]) -> list[str]:
    """Which methods are not the same, one line each."""
    what = {(True, False): "is gone", (False, True): "was not there", (True, True): "has changed"}
    return [f"{name} {what[name in old, name in new]}" for name in sorted({*old, *new})
            if old.get(name) != new.get(name)]


def _at(shape: Shape, path: str) -> Any:
    for name in path.split("/"):
        shape = shape.get(name) or {}
    return shape or None


def _hash(shape: Shape, name: str) -> str:
    """Of all that a peer of one method can notice."""
    method = {key: shape["methods"][name][key] for key in SEEN_BY_PEERS}
    kinds = _reached(method, shape["types"])
    numbers = {kind: f"type {number}" for number, kind in enumerate(kinds)}  # a class's name is not on the wire
    seen = {"topic": shape["topic"], "addressed_by": shape["addressed_by"], "method": method,
            "types": [shape["types"][kind] for kind in kinds]}
    text = NAMES.sub(lambda found: numbers.get(found[0], found[0]), json.dumps(seen, sort_keys=True))
    return hashlib.sha256(text.encode()).hexdigest()


def _reached(method: Shape, types: Shape) -> list[str]:
    """In the order in which the method, its arguments by name, and their fields by name lead to them."""
    found: dict[str, None] = {}
    waiting = [method]
    while waiting:
        for name in _named_in(waiting.pop(0)):
            if name in types and name not in found:
                found[name] = None
                waiting.append(types[name])
    return list(found)


def _named_in(part: Shape) -> Iterator[str]:
    yield from NAMES.findall(str(part.get("result", "")))
    for _, field in sorted({**part.get("arguments", {}), **part.get("fields", {})}.items()):
        yield from NAMES.findall(field["type"])
