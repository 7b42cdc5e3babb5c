"""What a handler gets and gives."""

from __future__ import annotations

import datetime
import uuid
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from nova import errors
from nova.model.base import Json, Time
from nova.placement.routing import PlacementRoute
from nova.web.dispatch import APIRequest


@dataclass(frozen=True)
class PlacementAnswer:
    """``body`` None: none. ``location``: a path below us, of what was made. ``at``: when what is shown last changed;
    where it is told, an answer without a body says so too."""

    body: Any = None
    status: int | None = None
    location: str | None = None
    at: Time | None = None


@dataclass
class PlacementAPIRequest(APIRequest):
    """One request; ``version`` is N of 1.N."""

    row: PlacementRoute

    @property
    def prefix(self) -> str:
        """The path that we are mounted at."""
        return str(self.http.environ.get("SCRIPT_NAME", ""))


def canonical(text: str) -> str:
    """A uuid that was accepted in any of its spellings, in its one form."""
    return str(uuid.UUID(text))


def keyed(pairs: Iterable[tuple[str, object]]) -> dict[str, Json]:
    """By uuid, in its one form. placement.Twice: which one counts would be anybody's guess."""
    found: dict[str, Any] = {}
    for text, value in pairs:
        name = canonical(text)
        if name in found:
            raise errors.placement.Twice(uuid=name)
        found[name] = value
    return found


def time_headers(time: Time | None) -> list[tuple[str, str]]:
    """When what is shown last changed (now, where nothing tells), and that nobody keeps it."""
    at = time.replace(tzinfo=datetime.UTC) if time else datetime.datetime.now(datetime.UTC)
    return [("last-modified", at.strftime("%a, %d %b %Y %H:%M:%S GMT")), ("cache-control", "no-cache")]
