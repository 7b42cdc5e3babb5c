"""Base types of wire values: frozen and keyword-only; fields are only ever added, with defaults."""

from __future__ import annotations

import datetime
import enum
import typing
from typing import Any, TypeAlias

import msgspec

#: A JSON value. Its schema, its contract or the service that sends it defines the shape.
Json = Any
#: A decoded JSON text of any shape.
JsonValue: TypeAlias = "None | bool | int | float | str | list[JsonValue] | dict[str, JsonValue]"
#: An object of a library that has no type annotations.
Library = Any

HostName = str  # a host's own name ([DEFAULT]host); orders are addressed by it

Time = datetime.datetime  # UTC without zone, microseconds kept


class _KeywordOnly(msgspec.StructMeta):
    """Metaclass that makes every subclass keyword-only, which msgspec (unlike ``frozen``) does not inherit."""

    def __new__(mcls, name: str, bases: tuple[type, ...], namespace: dict[str, object], **config: Any) -> type:
        return super().__new__(mcls, name, bases, namespace, **{"kw_only": True, **config})


@typing.dataclass_transform(frozen_default=True, kw_only_default=True)
class Value(msgspec.Struct, metaclass=_KeywordOnly, frozen=True, omit_defaults=True):
    """Base of wire values. Readers ignore fields that they do not know; collections are tuples and mappings. A field
    that was renamed keeps its name on the wire: ``msgspec.field(name=...)``."""


class WireEnum(str, enum.Enum):
    """An enum of wire values. Every subclass has an UNKNOWN member; unknown values of newer peers map to it."""

    @classmethod
    def _missing_(cls, value: object) -> WireEnum:
        return cls["UNKNOWN"]

    def __str__(self) -> str:
        return str(self.value)


def utcnow() -> Time:
    """Return the current time in UTC, without zone."""
    return datetime.datetime.now(datetime.UTC).replace(tzinfo=None)


class Scope(Value):
    """Rows that a reader may see: one project's, or all projects' if ``project_id`` is None."""

    project_id: str | None = None
    user_id: str | None = None


class Page(Value):
    """A slice of a list. ``limit`` None means the server's maximum."""

    limit: int | None = None
    marker: str | None = None
    offset: int = 0
