"""Microversion negotiation: selects the version of a request. A version is ``MAJOR.N``; in the code it is the number
N."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from wsgiref.types import WSGIEnvironment

import webob

from nova import errors
from nova.web import paths

HEADER = "OpenStack-API-Version"
LONGEST = 64  # characters of a version that an error message repeats


@dataclass(frozen=True)
class Microversions:
    """The versions of ``service``, from ``major.first`` to ``major.last``.

    ``form``: the syntax of versions, whether they exist or not. ``old_header``: a header with only a version.
    ``bare_is_none``: True to ignore a service without a version; False to treat it as malformed. ``tells_refused``: the
    response to an unsupported version has the version headers, too.
    """

    service: str
    major: int
    first: int
    last: int
    form: re.Pattern[str]
    malformed: Callable[..., errors.NovaError]
    out_of_range: type[errors.NovaError]
    old_header: str | None = None
    bare_is_none: bool = False
    tells_refused: bool = False

    @cached_property
    def _known(self) -> dict[str, int]:
        return {self.text(version): version for version in range(self.first, self.last + 1)}

    def text(self, version: int) -> str:
        """Return ``MAJOR.N``, as in headers and documents."""
        return f"{self.major}.{version}"

    def asked(self, headers: Mapping[str, str]) -> str:
        """Return the requested version, as text; the first version if the headers request none.

        The header may name several services, separated by commas.
        """
        for part in (headers.get(HEADER) or "").split(","):
            words = part.split(None, 1)
            if words and words[0].lower() == self.service and (len(words) == 2 or not self.bare_is_none):
                return words[1].strip() if len(words) == 2 else ""
        old = (headers.get(self.old_header) or "").strip() if self.old_header else ""
        return old or self.text(self.first)

    def chosen(self, headers: Mapping[str, str]) -> int:
        """Return the version to serve. Raises ``malformed`` or ``out_of_range``."""
        wanted = self.asked(headers)
        if wanted.lower() == "latest":
            return self.last
        known = self._known.get(wanted)
        if known is not None:
            return known
        if len(wanted) > LONGEST or self.form.fullmatch(wanted) is None:
            raise self.malformed(text=wanted[:LONGEST] or "''")
        raise self.out_of_range(asked=wanted, minimum=self.text(self.first), maximum=self.text(self.last))

    def choose(self, environ: WSGIEnvironment, http: webob.Request) -> int:
        """Return the version to serve, and record it in ``environ`` for the response headers."""
        try:
            version = self.chosen(http.headers)
        except self.out_of_range as error:
            if self.tells_refused:
                environ[paths.VERSION_KEY] = error.data["asked"]
            raise
        environ[paths.VERSION_KEY] = self.text(version)
        return version
