"""What a handler gets and gives."""

from __future__ import annotations

import datetime
import uuid
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from nova import errors
from nova.context import RequestContext
from nova.model.base import Json, Time
from nova.policies import Policy
from nova.web.schema import Values


@dataclass(frozen=True)
class Site:
    """What one application is made of; the same for all requests."""

    conductor: Any  # a client of PlacementRPC
    policy: Policy


@dataclass(frozen=True)
class Answer:
    """``body`` None: none. ``location``: a path below us, of what was made. ``at``: when what is shown last changed;
    where it is told, an answer without a body says so too."""

    body: Any = None
    status: int | None = None
    location: str | None = None
    at: Time | None = None


@dataclass
class Request:
    """One request, its version (N of 1.N), query and body checked. ``prefix``: the path that we are mounted at, below
    ``host`` (http://...).
    """

    site: Site
    context: RequestContext
    version: int
    prefix: str = ""
    rule: str = ""
    host: str = ""
    query: Values = field(default_factory=lambda: Values({}))
    body: Any = None
    policy_asked: bool = False

    @property
    def conductor(self) -> Json:
        return self.site.conductor

    def authorize(self, project_id: str | None = None) -> None:
        """Forbidden unless the operation's rule lets the caller act on what is the project's; without: the own's."""
        self.policy_asked = True
        target = {"project_id": project_id or self.context.project_id, "user_id": self.context.user_id}
        self.site.policy.authorize(self.context, self.rule, target)


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


def http_date(time: Time | None) -> str:
    """``Last-Modified``; now, where nothing tells when."""
    at = time.replace(tzinfo=datetime.UTC) if time else datetime.datetime.now(datetime.UTC)
    return at.strftime("%a, %d %b %Y %H:%M:%S GMT")
