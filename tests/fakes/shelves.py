"""Common functions of fakes over dictionaries: lookups that may fail, pages, changes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from nova import errors
from nova.model.base import Scope

replace = msgspec.structs.replace
EVERYTHING = Scope()


def visible(things: Iterable[Any], scope: Scope) -> list[Any]:
    """Return the resources of the scope's project."""
    return [one for one in things if scope.project_id is None or one.project_id == scope.project_id]


def held(things: Mapping[Any, Any], key: Any, what: str, scope: Scope = EVERYTHING) -> Any:
    """Return the resource of this key in the scope. Raises NotFound."""
    return first(visible([things[key]] if key in things else [], scope), f"{what} {key}")


def first(things: Iterable[Any], what: str) -> Any:
    """Return the first resource. Raises NotFound if there is none."""
    for one in things:
        return one
    raise errors.NotFound(f"{what} could not be found.")


def after(marker: Any, things: Iterable[Any], *names: str) -> list[Any]:
    """Return the resources after the marker, matched by one of these fields. Raises Invalid if none matches."""
    those = list(things)
    if marker is None:
        return those
    for index, one in enumerate(those):
        if str(marker) in [str(getattr(one, name)) for name in names]:
            return those[index + 1:]
    raise errors.Invalid(f"marker [{marker}] not found")


def page(things: Iterable[Any], paged: Any) -> tuple[Any, ...]:
    """Return the page of an offset and a limit."""
    rest = list(things)[paged.offset:]
    return tuple(rest if paged.limit is None else rest[:paged.limit])
