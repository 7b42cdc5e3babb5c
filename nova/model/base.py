"""What every wire value is: frozen, keyword-only, fields only ever added, with defaults."""

from __future__ import annotations

import datetime
import enum
import typing
from typing import Any

import msgspec

#: A value of JSON, whose shape its schema, its contract or the service that sends it says.
Json = Any
#: An object of a library that has no types of its own.
Library = Any

HostName = str  # what a host calls itself ([DEFAULT]host): orders are addressed by it

Time = datetime.datetime  # UTC without zone, microseconds kept


class _KeywordOnly(msgspec.StructMeta):
    """Makes every subclass keyword-only, which msgspec (unlike ``frozen``) does not inherit."""

    def __new__(mcls, name: str, bases: tuple[type, ...], namespace: dict[str, Json], **config: Json) -> Json:
        return super().__new__(mcls, name, bases, namespace, **{"kw_only": True, **config})


@typing.dataclass_transform(frozen_default=True, kw_only_default=True)
class Value(msgspec.Struct, metaclass=_KeywordOnly, frozen=True, omit_defaults=True):
    """Base of wire values. Readers ignore fields they don't know; collections are tuples and mappings."""


class WireEnum(str, enum.Enum):
    """An enum whose every subclass has an UNKNOWN member, which a newer peer's member falls back to."""

    @classmethod
    def _missing_(cls, value: object) -> WireEnum:
        return cls["UNKNOWN"]

    def __str__(self) -> str:
        return str(self.value)


def utcnow() -> Time:
    """Now, in UTC, without zone."""
    return datetime.datetime.now(datetime.UTC).replace(tzinfo=None)


class Scope(Value):
    """What rows a reader may see: one project's, or (``project_id`` None) everybody's."""

    project_id: str | None = None
    user_id: str | None = None


class Page(Value):
    """The slice of a list that is asked for. ``limit`` None means the server's maximum."""

    limit: int | None = None
    marker: str | None = None
    offset: int = 0
