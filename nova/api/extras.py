"""The parts of the API that the core does without: media types beside JSON, and operations beside its own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol
from wsgiref.types import WSGIApplication, WSGIEnvironment

from nova.api.dispatch import JSON, ComputeAPI
from nova.api.request import ComputeSite
from nova.api.routing import Route
from nova.model.base import Json
from nova.web.dispatch import encoded
from nova.web.routing import Router


class MediaTypes(Protocol):
    """The media types of /v2 and of the documents of versions."""

    def api(self, router: Router[Route], site: ComputeSite) -> WSGIApplication:
        """The application at /v2, behind authentication."""

    def chosen(self, environ: WSGIEnvironment, feeds: bool = False) -> str:
        """The media type of a document of versions (:mod:`nova.api.discovery`). A suffix that asks for one is taken off
        the request's path. ``feeds``: one may be a feed."""

    def written(self, document: Mapping[str, Json], kind: str) -> bytes:
        """A document of versions as ``kind``, a media type."""


class JsonOnly:
    """JSON, whatever the request asks for."""

    def api(self, router: Router[Route], site: ComputeSite) -> WSGIApplication:
        return ComputeAPI(router, site, legacy=True)

    def chosen(self, environ: WSGIEnvironment, feeds: bool = False) -> str:
        return JSON

    def written(self, document: Mapping[str, Json], kind: str) -> bytes:
        return encoded(document)


@dataclass(frozen=True, eq=False)
class Extras:
    """``networks``: operations in the place of those that only nova-network has and that this API does not know."""

    formats: MediaTypes = field(default_factory=JsonOnly)
    networks: tuple[Route, ...] = ()


CORE = Extras()
