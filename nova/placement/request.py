"""The input and output of handlers."""

from __future__ import annotations

import datetime
import uuid
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, TypeVar

from nova import errors
from nova.model.base import Time
from nova.placement.routing import PlacementRoute
from nova.rpc.contracts.placement import PlacementRPC
from nova.web.dispatch import APIRequest

T = TypeVar("T")


@dataclass(frozen=True)
class PlacementAnswer:
    """A handler's response. ``body``: None for an empty one. ``location``: the created resource's path, relative to the
    API. ``at``: the time of the last change of the data; where responses have times, one without a body has it, too."""

    body: Any = None
    status: int | None = None
    location: str | None = None
    at: Time | None = None


@dataclass
class PlacementAPIRequest(APIRequest):
    """A request; ``version`` is N of 1.N."""

    row: PlacementRoute

    @property
    def conductor(self) -> PlacementRPC:
        """Client of Placement's contract."""
        found: PlacementRPC = self.site.conductor
        return found

    @property
    def prefix(self) -> str:
        """The path at which the API is mounted."""
        return str(self.http.environ.get("SCRIPT_NAME", ""))


def canonical(text: str) -> str:
    """Return a UUID, accepted in any spelling, in canonical form."""
    return str(uuid.UUID(text))


def keyed(pairs: Iterable[tuple[str, T]]) -> dict[str, T]:
    """Return the values by canonical UUID. Raises placement.Twice for a repeated UUID: either value could be meant."""
    found: dict[str, T] = {}
    for text, value in pairs:
        name = canonical(text)
        if name in found:
            raise errors.placement.Twice(uuid=name)
        found[name] = value
    return found


def time_headers(time: Time | None) -> list[tuple[str, str]]:
    """Return headers with the time of the last change (now if unknown), and without caching."""
    at = time.replace(tzinfo=datetime.UTC) if time else datetime.datetime.now(datetime.UTC)
    return [("last-modified", at.strftime("%a, %d %b %Y %H:%M:%S GMT")), ("cache-control", "no-cache")]
