"""What a row of the table of routes says of one operation."""

from __future__ import annotations

from dataclasses import dataclass

from nova.web.ranges import within
from nova.web.routing import APIRoute

Codes = int | tuple[tuple[str | None, str | None, int], ...]


@dataclass(frozen=True)
class Route(APIRoute):
    """One operation. ``code``: success code, or (since, until, code) rows. ``legacy``: below /v2 alone."""

    since: str = "2.1"
    code: Codes = 200
    action: str | None = None
    legacy: bool = False

    @property
    def id(self) -> str:
        """As the contract names operations: ``POST /servers/{server_id}/action#os-start``."""
        return f"{self.method} {self.path}#{self.action}" if self.action else f"{self.method} {self.path}"

    def success(self, version: int) -> int:
        """The HTTP code of success at 2.``version``."""
        if isinstance(self.code, int):
            return self.code
        return next(code for since, until, code in self.code if within(version, since, until))
