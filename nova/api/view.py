"""Responses as tables of output fields, compiled for each version to a function that returns the dict of a value."""

from __future__ import annotations

import datetime
import functools
import operator
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from nova.api import versions

if TYPE_CHECKING:
    from nova.api.request import Request

LEFT_OUT = object()  # returned by the getter of an ``optional`` field that is not shown

Getter = Callable[[Any, "Request"], object]


@dataclass(frozen=True)
class Out:
    """A field of an answer: its name and its source: an attribute's name, or ``(value, request) -> shown``.

    ``flag``: shown only if rendered with this flag (by policy), or for ``no FLAG`` only without it. ``optional``: the
    getter may return LEFT_OUT. ``type``: a shape (see :func:`answers`) for the API's description, if neither the
    model's annotation nor the getter's has it.
    """

    name: str
    source: str | Getter
    since: str | None = None
    until: str | None = None
    flag: str | None = None
    optional: bool = False
    type: Any = None


class View:
    """A table of output fields; ``view(value, request)`` returns the dict of a value at the request's version.

    ``of``: the class of the values, from which the API's description takes the types of attributes.
    """

    def __init__(self, *fields: Out, of: type | None = None) -> None:
        self.fields = fields
        self.of = of
        self.compiled = functools.cache(self._compile)

    def __call__(self, value: object, request: Request, flags: frozenset[str] = frozenset()) -> dict[str, object]:
        return self.compiled(request.version, flags)(value, request)

    def all(self, values: Iterable[object], request: Request,
            flags: frozenset[str] = frozenset()) -> list[dict[str, object]]:
        """Return the dicts of all values, in order. ``flags``: parts of the response that the caller may see."""
        render = self.compiled(request.version, flags)
        return [render(value, request) for value in values]

    def held(self, version: int) -> list[Out]:
        """Return the rows of ``version``, for all flags."""
        return [entry for entry in self.fields if versions.within(version, entry.since, entry.until)]

    def rows(self, version: int, flags: frozenset[str]) -> list[Out]:
        """Return the rows that apply at ``version``. Raises ValueError for two rows of one name."""
        held = [entry for entry in self.held(version) if _flagged(entry.flag, flags)]
        names = [entry.name for entry in held]
        if len(names) != len(set(names)):
            raise ValueError(f"two rows of one name at {versions.text(version)}")
        return held

    def _compile(self, version: int, flags: frozenset[str]) -> Callable[[object, Request], dict[str, object]]:
        held = self.rows(version, flags)
        plain = [(entry.name, entry.source) for entry in held if isinstance(entry.source, str)]
        made = [(entry.name, entry.source) for entry in held if callable(entry.source) and not entry.optional]
        maybe = [(entry.name, entry.source) for entry in held if callable(entry.source) and entry.optional]
        names = [name for name, _ in plain]
        # a repeated last attribute makes attrgetter return a tuple even for one name; zip drops it
        attributes = [str(source) for _, source in plain] or ["__class__"]
        get = operator.attrgetter(*attributes, attributes[-1])

        def render(value: object, request: Request) -> dict[str, object]:
            shown = dict(zip(names, get(value), strict=False))
            for name, getter in made:
                shown[name] = getter(value, request)
            for name, getter in maybe:
                item = getter(value, request)
                if item is not LEFT_OUT:
                    shown[name] = item
            return shown

        return render


@dataclass(frozen=True)
class Free:
    """The shape of an object with user-defined keys: the shape of its values."""

    values: Any = "string"


@dataclass(frozen=True)
class During:
    """The shape of a response that has a body only in some versions."""

    shape: Any
    since: str | None = None
    until: str | None = None


LINK = {"rel": "string", "href": "string", "type?": "string"}
LINKS = [LINK]

Handler = TypeVar("Handler", bound=Callable[..., object])


def answers(shape: object, codes: tuple[int, ...] = ()) -> Callable[[Handler], Handler]:
    """Declare the shape of a handler's response, for the API's description; ``codes``: further codes of success.

    A shape is a View; ``[shape]``; ``{"key": shape}``, in which a key that ends with ``?`` may be missing;
    ``Free(shape)``; the name of a JSON type or ``any``; a Python type; several shapes in a tuple; None for no body,
    which a handler's annotation may also say; for the whole response, ``During(shape, since, until)``: no body before
    and after.
    """
    def mark(handler: Handler) -> Handler:
        handler.answer, handler.codes = shape, codes  # type: ignore[attr-defined]
        return handler
    return mark


def _flagged(flag: str | None, flags: frozenset[str]) -> bool:
    if flag is None:
        return True
    return flag[3:] not in flags if flag.startswith("no ") else flag in flags


def seconds(time: datetime.datetime | None) -> str | None:
    """Return a time as ``2013-09-03T04:01:32Z``, the form of ``created`` and ``updated``."""
    return None if time is None else time.isoformat(timespec="seconds") + "Z"


def micros(time: datetime.datetime | None) -> str | None:
    """Return a time as ``2013-09-23T13:53:12.774549``: with microseconds, without a zone."""
    return None if time is None else time.isoformat(timespec="microseconds")


def micros_of(attribute: str) -> Callable[[object, Request], str | None]:
    """Return a getter of a time in microseconds."""
    get = operator.attrgetter(attribute)

    def getter(value: object, request: Request) -> str | None:
        return micros(get(value))
    return getter


def seconds_of(attribute: str) -> Callable[[object, Request], str | None]:
    """Return a getter of a time in whole seconds, in the form of :func:`seconds`."""
    get = operator.attrgetter(attribute)

    def getter(value: object, request: Request) -> str | None:
        return seconds(get(value))
    return getter
