"""Answers as tables of output fields, compiled per version to one function that makes the dict of a value."""

from __future__ import annotations

import datetime
import functools
import operator
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from nova.api import versions

if TYPE_CHECKING:
    from nova.api.request import Request

LEFT_OUT: Any = object()  # what the getter of an ``optional`` field gives when the field is not shown

Getter = Callable[[Any, "Request"], Any]


@dataclass(frozen=True)
class Out:
    """One row: the field's name, and where it comes from: an attribute's name, or ``(value, request) -> shown``.

    ``flag``: shown only where the caller renders with this flag (policy decides it), or with ``no FLAG`` only without.
    ``optional``: the getter may give LEFT_OUT.
    """

    name: str
    source: str | Getter
    since: str | None = None
    until: str | None = None
    flag: str | None = None
    optional: bool = False


class View:
    """A table of output fields; ``view(value, request)`` is its dict at the request's version."""

    def __init__(self, *fields: Out) -> None:
        self.fields = fields
        self.compiled = functools.cache(self._compile)

    def __call__(self, value: Any, request: Request, flags: frozenset[str] = frozenset()) -> dict[str, Any]:
        return self.compiled(request.version, flags)(value, request)

    def all(self, values: Iterable[Any], request: Request, flags: frozenset[str] = frozenset()) -> list[dict[str, Any]]:
        render = self.compiled(request.version, flags)
        return [render(value, request) for value in values]

    def rows(self, version: int, flags: frozenset[str]) -> list[Out]:
        """The rows that hold at ``version``. ValueError when two of one name do."""
        held = [entry for entry in self.fields
                if versions.within(version, entry.since, entry.until) and _flagged(entry.flag, flags)]
        names = [entry.name for entry in held]
        if len(names) != len(set(names)):
            raise ValueError(f"two rows of one name at {versions.text(version)}")
        return held

    def _compile(self, version: int, flags: frozenset[str]) -> Callable[[Any, Request], dict[str, Any]]:
        held = self.rows(version, flags)
        plain = [(entry.name, entry.source) for entry in held if isinstance(entry.source, str)]
        made = [(entry.name, entry.source) for entry in held if callable(entry.source) and not entry.optional]
        maybe = [(entry.name, entry.source) for entry in held if callable(entry.source) and entry.optional]
        names = [name for name, _ in plain]
        # a repeated last attribute makes attrgetter give a tuple even for one name; zip drops it
        attributes = [str(source) for _, source in plain] or ["__class__"]
        get = operator.attrgetter(*attributes, attributes[-1])

        def render(value: Any, request: Request) -> dict[str, Any]:
            shown = dict(zip(names, get(value), strict=False))
            for name, getter in made:
                shown[name] = getter(value, request)
            for name, getter in maybe:
                item = getter(value, request)
                if item is not LEFT_OUT:
                    shown[name] = item
            return shown

        return render


def _flagged(flag: str | None, flags: frozenset[str]) -> bool:
    if flag is None:
        return True
    return flag[3:] not in flags if flag.startswith("no ") else flag in flags


def seconds(time: datetime.datetime | None) -> str | None:
    """``2013-09-03T04:01:32Z``: the form of ``created`` and ``updated``."""
    return None if time is None else time.isoformat(timespec="seconds") + "Z"


def micros(time: datetime.datetime | None) -> str | None:
    """``2013-09-23T13:53:12.774549``: microseconds, no zone."""
    return None if time is None else time.isoformat(timespec="microseconds")


def micros_of(attribute: str) -> Getter:
    """A getter of a time in microseconds."""
    get = operator.attrgetter(attribute)
    return lambda value, request: micros(get(value))


def seconds_of(attribute: str) -> Getter:
    get = operator.attrgetter(attribute)
    return lambda value, request: seconds(get(value))
