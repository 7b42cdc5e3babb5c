"""A table of routes, and which of its rows a path means: the ``routes`` library's mapper over them, made once."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

from routes import Mapper

from nova.web.ranges import within
from nova.web.schema import Body, Query


class HasPath(Protocol):
    """A row: ``path`` has its parameters in braces, each a whole segment."""

    @property
    def method(self) -> str:
        """The HTTP method, in capitals."""

    @property
    def path(self) -> str: ...


@dataclass(frozen=True)
class APIRoute:
    """A row of an API's table of routes, served from version ``since`` to ``until``.

    ``policy``: the rule asked before the handler, with the caller's own project as target; with ``looks_first`` the
    handler asks it (``req.authorize``) on what it has found, so that a missing object is 404 before 403.
    """

    method: str
    path: str
    handler: Callable[..., Any]
    policy: str | None = None
    body: Body | None = None
    query: Query | None = None
    since: str | None = None
    until: str | None = None
    looks_first: bool = False

    @property
    def names(self) -> tuple[str, ...]:
        return parameters(self.path)

    @property
    def id(self) -> str:
        """Method and path, as the API reference lists operations."""
        return f"{self.method} {self.path}"


Row = TypeVar("Row", bound=HasPath)
AnyRoute = TypeVar("AnyRoute", bound=APIRoute)

_NAME = "[^/]+"  # the library's own would leave a line end behind it out
_END = "end_"  # a group of the library's expression that is none of the path's parameters


class Router(Generic[Row]):
    """Literals stand before parameters. A slash at a path's end is nothing, but where a name may stand it is an empty
    name, which no row has. ValueError: two rows name the parameters of one path differently.

    Each method has a mapper of its own: what the library's one expression of all paths lets through is a hit then. A
    miss behind it is tried against every path of the first segment, and that many times over.
    """

    def __init__(self, routes: Iterable[Row]) -> None:
        self._rows: dict[str, dict[str, list[Row]]] = defaultdict(lambda: defaultdict(list))
        for route in routes:
            self._rows[route.path][route.method].append(route)
        shapes = {_shape(path) for path in self._rows}
        if len(shapes) < len(self._rows):
            raise ValueError("Two paths differ in the names of their parameters only")
        self._before_names = {shape[:at] for shape in shapes for at in range(len(shape)) if shape.startswith("/{}", at)}
        self._of_all = self._mapper(self._rows)
        methods = {method for by_method in self._rows.values() for method in by_method}
        self._by_method = {method: self._mapper(path for path, by_method in self._rows.items() if method in by_method)
                           for method in methods}

    def match(self, method: str, path: str) -> tuple[list[Row], dict[str, str]] | None:
        """The rows of all versions and actions at this method and path, with the parameters' values."""
        mapper = self._by_method.get(method)
        found = mapper.routematch(path) if mapper is not None else None
        if found is None:
            return None
        values, route = found
        del values[_END]
        return self._rows[route.name][method], values

    def rows(self, path: str) -> list[Row]:
        """The rows of all methods at this path."""
        found = self._of_all.routematch(path)
        return [] if found is None else [row for rows in self._rows[found[1].name].values() for row in rows]

    def _mapper(self, paths: Iterable[str]) -> Mapper:
        mapper = Mapper(controller_scan=None, register=False)
        mapper.encoding = None  # paths come as text
        for path in sorted(paths, key=_literals_first):
            requirements = dict.fromkeys(parameters(path), _NAME)
            requirements[_END] = r"\Z" if _shape(path) in self._before_names else r"/?\Z"
            mapper.connect(path, f"{path}{{{_END}}}", requirements=requirements)
        mapper.create_regs([])
        return mapper


def at_version(rows: Iterable[AnyRoute], version: int) -> list[AnyRoute]:
    """Those of ``rows`` that are served at ``version``."""
    return [row for row in rows if within(version, row.since, row.until)]


def parameters(path: str) -> tuple[str, ...]:
    """The names in braces."""
    return tuple(part[1:-1] for part in path.split("/") if part.startswith("{"))


def _shape(path: str) -> str:
    """The path without its parameters' names."""
    return "/".join("{}" if part.startswith("{") else part for part in path.split("/"))


def _literals_first(path: str) -> list[tuple[bool, str]]:
    return [(part.startswith("{"), part) for part in path.split("/")]
