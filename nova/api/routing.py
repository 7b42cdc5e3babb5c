"""Rows of the table of routes."""

from __future__ import annotations

from dataclasses import dataclass

from nova.web.ranges import within
from nova.web.routing import APIRoute

Codes = int | tuple[tuple[str | None, str | None, int], ...]


@dataclass(frozen=True)
class Route(APIRoute):
    """An operation of the compute API. ``code``: success code, or (since, until, code) rows. ``legacy``: only under
    /v2."""

    since: str = "2.1"
    code: Codes = 200
    action: str | None = None
    legacy: bool = False

    @property
    def id(self) -> str:
        """The operation's name in the contract: ``POST /servers/{server_id}/action#os-start``."""
        return f"{self.method} {self.path}#{self.action}" if self.action else f"{self.method} {self.path}"

    def success(self, version: int) -> int:
        """Return the HTTP code of success at 2.``version``."""
        if isinstance(self.code, int):
            return self.code
        return next(code for since, until, code in self.code if within(version, since, until))
