"""What a row of the table of routes says of one operation."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from nova.api import versions
from nova.web import routing
from nova.web.schema import Body, Query

Codes = int | tuple[tuple[str | None, str | None, int], ...]


@dataclass(frozen=True)
class Route:
    """One operation. ``code``: success code, or (since, until, code) rows.

    ``policy``: the rule asked before the handler, with the caller's own project as target; with ``looks_first`` the
    handler asks it (``req.authorize``) on what it has found, so that a missing object is 404 before 403.
    """

    method: str
    path: str
    handler: Callable[..., Any]
    policy: str | None = None
    body: Body | None = None
    query: Query | None = None
    code: Codes = 200
    since: str = "2.1"
    until: str | None = None
    action: str | None = None
    looks_first: bool = False

    @property
    def names(self) -> tuple[str, ...]:
        return routing.parameters(self.path)

    @property
    def id(self) -> str:
        """As the contract names operations: ``POST /servers/{server_id}/action#os-start``."""
        return f"{self.method} {self.path}" + (f"#{self.action}" if self.action else "")

    def success(self, version: int) -> int:
        if isinstance(self.code, int):
            return self.code
        return next(code for since, until, code in self.code if versions.within(version, since, until))


def at_version(rows: Iterable[Route], version: int) -> Route | None:
    """The one of ``rows`` that holds at ``version``."""
    return next((row for row in rows if versions.within(version, row.since, row.until)), None)
