"""What fakes over dictionaries do again and again: things that may not be there, pages of them, changes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from nova import errors
from nova.model.base import Scope

replace = msgspec.structs.replace
EVERYTHING = Scope()


def visible(things: Iterable[Any], scope: Scope) -> list[Any]:
    """Those of the scope's project."""
    return [one for one in things if scope.project_id is None or one.project_id == scope.project_id]


def held(things: Mapping[Any, Any], key: Any, what: str, scope: Scope = EVERYTHING) -> Any:
    """The thing of this key in the scope, or NotFound."""
    return first(visible([things[key]] if key in things else [], scope), f"{what} {key}")


def first(things: Iterable[Any], what: str) -> Any:
    """NotFound when there is none."""
    for one in things:
        return one
    raise errors.NotFound(f"{what} could not be found.")


def after(marker: Any, things: Iterable[Any], *names: str) -> list[Any]:
    """What comes after the thing that the marker names, by one of these fields. Invalid: no such thing."""
    those = list(things)
    if marker is None:
        return those
    for index, one in enumerate(those):
        if str(marker) in [str(getattr(one, name)) for name in names]:
            return those[index + 1:]
    raise errors.Invalid(f"marker [{marker}] not found")


def page(things: Iterable[Any], paged: Any) -> tuple[Any, ...]:
    """By offset and limit."""
    rest = list(things)[paged.offset:]
    return tuple(rest if paged.limit is None else rest[:paged.limit])
