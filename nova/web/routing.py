"""A table of routes, and the lookup of a path's rows: with one mapper of the ``routes`` library, created once."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

from routes import Mapper

from nova.web.ranges import within
from nova.web.schema import Body, Query


class HasPath(Protocol):
    """A row with a ``path``, whose parameters are in braces; each is a whole segment."""

    @property
    def method(self) -> str:
        """HTTP method, in upper case."""

    @property
    def path(self) -> str: ...


@dataclass(frozen=True)
class APIRoute:
    """A row of an API's table of routes, served from version ``since`` to ``until``.

    ``policy``: the rule that is checked before the handler, with the caller's own project as target. With
    ``looks_first`` the handler checks it (``req.authorize``) on the object that it has read, so that a missing object
    is 404 before 403.
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
        """Method and path, as in the API reference."""
        return f"{self.method} {self.path}"


Row = TypeVar("Row", bound=HasPath)
AnyRoute = TypeVar("AnyRoute", bound=APIRoute)

_NAME = "[^/]+"  # the library's own pattern would drop a trailing line end
_END = "end_"  # a group of the library's expression that is not a parameter of the path


class Router(Generic[Row]):
    """The lookup of a path's rows. Literals take precedence over parameters. A trailing slash is ignored, except where
    a name could follow: there it is an empty name, which no row has. Raises ValueError if two rows name the parameters
    of one path differently.

    Each method has its own mapper, so that a match of the library's combined expression for all paths is a hit. A miss
    after it would be tried against every path of the first segment, many times over.
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
        """Return the rows of all versions and actions at this method and path, with the parameters' values."""
        mapper = self._by_method.get(method)
        found = mapper.routematch(path) if mapper is not None else None
        if found is None:
            return None
        values, route = found
        del values[_END]
        return self._rows[route.name][method], values

    def rows(self, path: str) -> list[Row]:
        """Return the rows of all methods at this path."""
        found = self._of_all.routematch(path)
        return [] if found is None else [row for rows in self._rows[found[1].name].values() for row in rows]

    def _mapper(self, paths: Iterable[str]) -> Mapper:
        mapper = Mapper(controller_scan=None, register=False)
        mapper.encoding = None  # paths are text already
        for path in sorted(paths, key=_literals_first):
            requirements = dict.fromkeys(parameters(path), _NAME)
            requirements[_END] = r"\Z" if _shape(path) in self._before_names else r"/?\Z"
            mapper.connect(path, f"{path}{{{_END}}}", requirements=requirements)
        mapper.create_regs([])
        return mapper


def at_version(rows: Iterable[AnyRoute], version: int) -> list[AnyRoute]:
    """Return the rows that are served at ``version``."""
    return [row for row in rows if within(version, row.since, row.until)]


def parameters(path: str) -> tuple[str, ...]:
    """Return the names in braces."""
    return tuple(part[1:-1] for part in path.split("/") if part.startswith("{"))


def _shape(path: str) -> str:
    """Return the path without the names of its parameters."""
    return "/".join("{}" if part.startswith("{") else part for part in path.split("/"))


def _literals_first(path: str) -> list[tuple[bool, str]]:
    return [(part.startswith("{"), part) for part in path.split("/")]
