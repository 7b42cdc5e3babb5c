"""The compute API at /v2 with content negotiation: JSON or XML, independently for requests and responses."""

from __future__ import annotations

from collections.abc import Iterable
from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

import msgspec
import webob

from nova import errors
from nova.api import faults, versions
from nova.api.dispatch import ComputeAPI
from nova.api.request import ComputeSite, Request
from nova.api.routing import Route
from nova.legacy.xml import negotiation, reader, requests, writer
from nova.model.base import Json
from nova.web import bodies
from nova.web.dispatch import Headers
from nova.web.errors import ErrorFormat, Errors
from nova.web.routing import Router


class _Elements(dict[str, reader.Element]):
    """An XML body before its operation is known: name of the root -> root. The name of an action is its root's name."""


class NegotiatedAPI(ComputeAPI):
    """The API for one media type of responses, ``kind``. It accepts bodies in JSON and XML."""

    def __init__(self, router: Router[Route], site: ComputeSite, kind: str) -> None:
        super().__init__(router, site, legacy=True)
        self.kind = kind

    def read(self, http: webob.Request) -> Json:
        """Return the body of a POST or PUT, or None. Raises api.UnsupportedType, and the errors of the parsers."""
        raw = http.body if http.method in bodies.WITH_BODY else b""
        if not raw:
            return None
        kind = (http.environ.get("CONTENT_TYPE") or "").split(";")[0].strip().lower()
        if kind in negotiation.JSON_TYPES:
            return bodies.decode(raw)
        if kind not in negotiation.XML_TYPES:
            raise errors.api.UnsupportedType(content_type=kind or "(none)")
        root = reader.read(raw)
        return _Elements({requests.local(root.tag): root})

    def begin(self, environ: WSGIEnvironment) -> Request | None:
        request = super().begin(environ)
        if request is not None and isinstance(request.body, _Elements):
            [root] = request.body.values()
            body = request.row.body
            request.body = requests.body_of(root, body.compiled(versions.LEGACY, True) if body else None)
        return request

    def reply(self, request: Request, answer: object) -> tuple[int, Headers, bytes]:
        status, headers, content = super().reply(request, answer)
        if content and self.kind in negotiation.XML_TYPES:
            content = writer.write(msgspec.json.decode(content), request.row.id)
        own = {"Content-Type": self.kind, "Content-Length": str(len(content))}
        return status, [(name, own.get(name, value)) for name, value in headers], content


def _speech(kind: str) -> ErrorFormat:
    """Return the error format for ``kind``, an XML media type."""
    def described(error: Exception, environ: WSGIEnvironment) -> tuple[int, bytes]:
        status, content = faults.ERROR_FORMAT.described(error, environ)
        return status, writer.write(msgspec.json.decode(content))
    return ErrorFormat(described, lambda environ: [], kind)


class Representations:
    """The application mounted at /v2, behind authentication. Plain JSON requests bypass the negotiation."""

    def __init__(self, router: Router[Route], site: ComputeSite) -> None:
        self.usual = ComputeAPI(router, site, legacy=True)
        self.negotiated: dict[str, WSGIApplication] = {
            **{kind: NegotiatedAPI(router, site, kind) for kind in negotiation.JSON_TYPES},
            **{kind: Errors(NegotiatedAPI(router, site, kind), _speech(kind)) for kind in negotiation.XML_TYPES}}

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        usual = negotiation.is_usual(environ)
        application = self.usual if usual else self.negotiated[negotiation.chosen(environ)]
        return application(environ, start_response)
