"""Which row of the table of routes a request means: a trie of path segments, literals before parameters."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from nova.api import versions
from nova.api.schema import Body, Query

Codes = int | tuple[tuple[str | None, str | None, int], ...]


@dataclass(frozen=True)
class Route:
    """One operation. ``code``: success code, or (since, until, code) rows.

    ``policy``: the rule asked before the handler, with the caller's own project as target; with ``looks_first`` the
    handler asks it (``req.authorize``) on what it has found, so that a missing object is 404 before 403.
    """

    method: str
    path: str
    handler: Callable[..., Any]
    policy: str | None = None
    body: Body | None = None
    query: Query | None = None
    code: Codes = 200
    since: str = "2.1"
    until: str | None = None
    action: str | None = None
    looks_first: bool = False

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(part[1:-1] for part in self.path.split("/") if part.startswith("{"))

    @property
    def id(self) -> str:
        """As the contract names operations: ``POST /servers/{server_id}/action#os-start``."""
        return f"{self.method} {self.path}" + (f"#{self.action}" if self.action else "")

    def success(self, version: int) -> int:
        if isinstance(self.code, int):
            return self.code
        return next(code for since, until, code in self.code if versions.within(version, since, until))


@dataclass
class Node:
    literals: dict[str, Node] = field(default_factory=dict)
    parameter: Node | None = None
    methods: dict[str, list[Route]] = field(default_factory=dict)


class Router:
    def __init__(self, routes: Iterable[Route]) -> None:
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

    def match(self, method: str, path: list[str]) -> tuple[list[Route], list[str]] | None:
        """The rows of all versions and actions at this method and path, with the parameters' values."""
        return _match(self._root, method, path, [])


def _match(node: Node, method: str, path: list[str], values: list[str]) -> tuple[list[Route], list[str]] | None:
    if not path:
        rows = node.methods.get(method)
        return (rows, values) if rows else None
    head, rest = path[0], path[1:]
    if not head and not rest and node.parameter is None:
        return _match(node, method, [], values)  # a slash at the end; where a name may stand, it is an empty name
    literal = node.literals.get(head)
    found = _match(literal, method, rest, values) if literal else None
    if found is None and node.parameter is not None and head:
        found = _match(node.parameter, method, rest, [*values, head])
    return found


def at_version(rows: Iterable[Route], version: int) -> Route | None:
    """The one of ``rows`` that holds at ``version``."""
    return next((row for row in rows if versions.within(version, row.since, row.until)), None)
