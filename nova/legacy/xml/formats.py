"""XML for the API at /v2, and XML or Atom for the version documents."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast
from wsgiref.types import WSGIApplication, WSGIEnvironment

from nova.api.request import ComputeSite
from nova.api.routing import Route
from nova.legacy.xml import documents, negotiation
from nova.legacy.xml.application import Representations
from nova.web.dispatch import encoded
from nova.web.routing import Router


class XmlAndJson:
    """An implementation of :class:`nova.api.extras.MediaTypes` with JSON, XML and Atom."""

    def api(self, router: Router[Route], site: ComputeSite) -> WSGIApplication:
        """Return the API with content negotiation by suffix or Accept header."""
        return Representations(router, site)

    def chosen(self, environ: WSGIEnvironment, feeds: bool = False) -> str:
        """Return the media type by suffix, then by the Accept header. ``feeds``: Atom is available, too."""
        return negotiation.chosen(environ, documents.MEDIA_TYPES if feeds else negotiation.MEDIA_TYPES)

    def written(self, document: Mapping[str, object], kind: str) -> bytes:
        """Serialize a document as JSON, XML or an Atom feed."""
        if kind in negotiation.JSON_TYPES:
            return encoded(document)
        return documents.written(cast(documents.VersionsDocument, document), kind)
