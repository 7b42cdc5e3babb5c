"""Makes request bodies from the contract's rows: the smallest that passes, and values on both sides of each bound."""

from __future__ import annotations

import copy
import re
from collections.abc import Iterator
from typing import Any

from tests.contract import rows

#: Texts to choose from where a pattern or a format asks for more than letters.
TEXTS = ("a", "A", "1", "0", "auto", "none", "host.example", "6c1f0f4e-5a0e-4f0d-9d9a-0d7a2e7c9f11", "192.0.2.1",
         "2001:db8::1", "192.0.2.0/24", "2020-01-01T00:00:00Z", "YWJj", "true", "/dev/vda", "00:11:22:33:44:55",
         "http://example.org/", "tcp", "ssh", "HARD", "a:b", "2020-01-01 00:00:00", "a/b", "/1.2.3.4", "")
#: One value of each JSON type, and of texts that are read as other types.
OTHERS: tuple[Any, ...] = (None, True, False, 0, 1, -1, 1.5, "", "x", "1", "-1", "yes", [], ["x"], {}, {"x": "x"})
KEYS = ("a", "key", "hw:cpu_policy", "1", "a b")
Node = dict[str, Any]


def smallest(node: Node) -> Any:
    """The smallest value that passes: what is required, and no more."""
    row, inner = node.get("row", {}), node.get("in", {})
    if "allowed" in row:
        return row["allowed"][0]
    if inner and "[]" not in inner:
        return opened_object(row, inner)
    if "[]" in inner and "items_in_order" not in row:
        return [smallest(inner["[]"]) for _ in range(row.get("min_items", 0))]
    return example(row)


def opened_object(row: dict[str, Any], inner: Node) -> dict[str, Any]:
    made = {name: smallest(child) for name, child in inner.items()
            if child.get("row", {}).get("required") and not name.startswith("/") and name != "*"}
    wanted = next((choice["requires"] for choice in row.get("any_of", ()) if "requires" in choice), ())
    made |= {name: smallest(inner[name]) for name in wanted}
    while len(made) < row.get("min_keys", 0):
        name, child = next((name, child) for name, child in inner.items() if name.startswith("/") or name == "*"
                           or name not in made)
        made[key_of(name)] = smallest(child)
    return made


def smallest_body(tree: Node, action: str | None = None) -> Any:
    """The smallest body; where the contract has no rows for it, an object (of the action's key alone)."""
    if not tree:
        return {action: None} if action else {}
    return smallest(tree)


def example(row: dict[str, Any]) -> Any:
    """A value that one row takes. LookupError where none is known."""
    kinds = row.get("type", "any")
    choices = (*row.get("allowed", ()), *(example(one) for one in row.get("one_of", ())[:1]),
               [example(item) for item in row.get("items_in_order", ())], *TEXTS, "a" * row.get("min_length", 1),
               *OTHERS, [example(row["items"])] if "items" in row else [], *sizes(row))
    for choice in choices:
        if not rows.problems(row, choice) and (choice is not None or kinds in ("null", "any", ["null"])):
            return choice
    raise LookupError(f"no example of {row}")


def sizes(row: dict[str, Any]) -> Iterator[Any]:
    """Numbers and texts at the row's bounds."""
    for bound in ("min", "max", "above"):
        if bound in row:
            yield from (row[bound] + step for step in (0, 1, -1))
            yield from (str(int(row[bound]) + step) for step in (0, 1, -1))
    for bound in ("min_length", "max_length"):
        if bound in row:
            yield from ("a" * (row[bound] + step) for step in (0, 1, -1) if row[bound] + step >= 0)


def edges(node: Node) -> Iterator[Any]:
    """Values inside and outside of each bound of a row, of each type, and of each alternative."""
    row, inner = node.get("row", {}), node.get("in", {})
    yield from _alternatives(row)
    if "[]" in inner or "items" in row:
        item = smallest(inner["[]"]) if "[]" in inner else example(row["items"])
        counts = {0, 1, 2, *(row[name] + step for name in ("min_items", "max_items") if name in row
                             for step in (-1, 0, 1))}
        yield from ([vary(item, number) for number in range(count)] for count in sorted(counts) if count >= 0)
        yield [item, item]
    if inner and "[]" not in inner:
        base = opened_object(row, inner)
        yield base
        free = next((name for name in inner if name.startswith("/") or name == "*"), None)
        if free is not None and "max_keys" in row:
            value = smallest(inner[free])
            for count in (row["max_keys"], row["max_keys"] + 1):
                yield {**base, **{f"{key_of(free)}{number}": value for number in range(count)}}
    if "items_in_order" in row:
        yield example(row)
        yield from ([value] for value in _alternatives(row["items_in_order"][0]))
    yield from OTHERS


def _alternatives(spec: dict[str, Any]) -> Iterator[Any]:
    for value in spec.get("allowed", ()):
        yield value
        yield f"x{value}"
        yield str(value).swapcase()
    yield from spec.get("also", ())
    yield from sizes(spec)
    if {"pattern", "format"} & spec.keys():
        yield from TEXTS
        yield from ("%%%", " a", "a ", "a\x00b", "é", "[", "a,b")
    for name in ("one_of", "any_of", "all_of", "or"):
        for choice in spec.get(name, ()):
            yield from _alternatives(choice)
            if "items" in choice:
                item = example(choice["items"])
                yield from ([item] * count for count in (0, 1, 2))


def vary(item: Any, number: int) -> Any:
    """Copies of an item that differ from each other, where it is a text or has one."""
    if isinstance(item, str) and not re.fullmatch(r"[0-9a-f-]{36}", item):
        return f"{item}{number}"
    return copy.deepcopy(item)


def key_of(name: str) -> str:
    """A key that a pattern of keys takes."""
    if name in ("*", ""):
        return "a"
    if not name.startswith("/"):
        return name
    return next(key for key in KEYS if re.search(name[1:-1], key))


def paths(tree: Node, before: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Node]]:
    """(steps, node) of every field."""
    for name, child in tree.get("in", {}).items():
        yield (*before, name), child
        yield from paths(child, (*before, name))


def put(tree: Node, body: Any, steps: tuple[str, ...], value: Any) -> Any:
    """A copy of ``body`` with ``value`` at a path; what is missing on the way is made as small as it may be."""
    body = copy.deepcopy(body)
    node, place = tree, body
    for index, step in enumerate(steps):
        node = node["in"][step]
        last = index == len(steps) - 1
        if step == "[]":
            if not isinstance(place, list):
                raise LookupError(steps)
            place[:1] = [value if last else place[0] if place and fits_inside(node, place[0]) else opened(node)]
            place = place[0]
            continue
        if not isinstance(place, dict):
            raise LookupError(steps)
        name = key_of(step)
        if last:
            place[name] = value
        elif not fits_inside(node, place.get(name)):
            place[name] = opened(node)
        place = place[name]
    return body


def opened(node: Node) -> Any:
    """A container for what the node has inside."""
    return [] if "[]" in node.get("in", {}) else opened_object(node.get("row", {}), node.get("in", {}))


def fits_inside(node: Node, value: Any) -> bool:
    return isinstance(value, list if "[]" in node.get("in", {}) else dict)
