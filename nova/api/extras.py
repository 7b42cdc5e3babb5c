"""Optional parts of the API outside the core: media types other than JSON, and further operations."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol
from wsgiref.types import WSGIApplication, WSGIEnvironment

from nova.api.dispatch import JSON, ComputeAPI
from nova.api.request import ComputeSite
from nova.api.routing import Route
from nova.web.dispatch import encoded
from nova.web.routing import Router


class MediaTypes(Protocol):
    """The media types of /v2 and of the documents of versions."""

    def api(self, router: Router[Route], site: ComputeSite) -> WSGIApplication:
        """Return the application at /v2, behind authentication."""

    def chosen(self, environ: WSGIEnvironment, feeds: bool = False) -> str:
        """Return the media type of a versions document (:mod:`nova.api.discovery`). A suffix that selects one is
        removed from the request's path. ``feeds``: allow a feed."""

    def written(self, document: Mapping[str, object], kind: str) -> bytes:
        """Return a versions document encoded as the media type ``kind``."""


class JsonOnly:
    """JSON only, regardless of the request."""

    def api(self, router: Router[Route], site: ComputeSite) -> WSGIApplication:
        return ComputeAPI(router, site, legacy=True)

    def chosen(self, environ: WSGIEnvironment, feeds: bool = False) -> str:
        return JSON

    def written(self, document: Mapping[str, object], kind: str) -> bytes:
        return encoded(document)


@dataclass(frozen=True, eq=False)
class Extras:
    """Optional parts. ``networks``: removed operations that only nova-network supports, served instead of a 410."""

    formats: MediaTypes = field(default_factory=JsonOnly)
    networks: tuple[Route, ...] = ()


CORE = Extras()
