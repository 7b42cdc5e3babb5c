"""Which rows of a table of routes a path means: a trie of path segments, literals before parameters."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Generic, Protocol, TypeVar


class HasPath(Protocol):
    """A row: ``path`` has its parameters in braces, each a whole segment."""

    @property
    def method(self) -> str: ...

    @property
    def path(self) -> str: ...


Row = TypeVar("Row", bound=HasPath)


@dataclass
class Node:
    literals: dict[str, Node] = field(default_factory=dict)
    parameter: Node | None = None
    methods: dict[str, list[Any]] = field(default_factory=dict)


class Router(Generic[Row]):
    def __init__(self, routes: Iterable[Row]) -> None:
        self._root = Node()
        for route in routes:
            node = self._root
            for part in route.path.split("/")[1:]:
                if part.startswith("{"):
                    node.parameter = node.parameter or Node()
                    node = node.parameter
                else:
                    node = node.literals.setdefault(part, Node())
            node.methods.setdefault(route.method, []).append(route)

    def match(self, method: str, path: list[str]) -> tuple[list[Row], list[str]] | None:
        """The rows of all versions and actions at this method and path, with the parameters' values."""
        found = _match(self._root, method, path, [])
        return None if found is None else (found[0].methods[method], found[1])

    def rows(self, path: list[str]) -> list[Row]:
        """The rows of all methods at this path."""
        found = _match(self._root, None, path, [])
        return [] if found is None else [row for rows in found[0].methods.values() for row in rows]


def parameters(path: str) -> tuple[str, ...]:
    """The names in braces."""
    return tuple(part[1:-1] for part in path.split("/") if part.startswith("{"))


def _match(node: Node, method: str | None, path: list[str], values: list[str]) -> tuple[Node, list[str]] | None:
    """The node that has the method (None: any)."""
    if not path:
        return (node, values) if (method in node.methods if method else node.methods) else None
    head, rest = path[0], path[1:]
    if not head and not rest and node.parameter is None:
        return _match(node, method, [], values)  # a slash at the end; where a name may stand, it is an empty name
    literal = node.literals.get(head)
    found = _match(literal, method, rest, values) if literal else None
    if found is None and node.parameter is not None and head:
        found = _match(node.parameter, method, rest, [*values, head])
    return found
