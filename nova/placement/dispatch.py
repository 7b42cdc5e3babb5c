"""Finds a request's operation, checks in order (version, path, method, policy, media, query, body), answers."""

from __future__ import annotations

import collections
from collections.abc import Callable, Iterable
from http.client import responses
from wsgiref.types import StartResponse, WSGIEnvironment

import msgspec
import webob

from nova import errors
from nova.model.base import Json
from nova.placement import faults, versions
from nova.placement.faults import JSON
from nova.placement.request import Answer, Request, Site, canonical, http_date
from nova.placement.routes import ROUTES, Route
from nova.web import bodies, paths
from nova.web.formats import is_uuid
from nova.web.query import query_pairs
from nova.web.ranges import within
from nova.web.routing import Router
from nova.web.schema import Values

_encode = msgspec.json.Encoder().encode


class Root:
    """The versions document at the root, which needs no token; what is mounted beside; all else to the API."""

    def __init__(self, api: Callable[..., Json], beside: dict[str, Callable[..., Json]]) -> None:
        self.api = api
        self.beside = beside

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        path = environ.get("PATH_INFO", "")
        environ["nova.path"] = environ.get("SCRIPT_NAME", "") + path
        beside = self.beside.get(path.removeprefix("/").partition("/")[0])
        if beside is not None:
            return beside(environ, start_response)
        if path in ("", "/"):
            if environ["REQUEST_METHOD"] not in ("GET", "HEAD"):
                environ[faults.ALLOW_KEY] = "GET"
                raise errors.placement.MethodNotAllowed(method=_method(environ))
            _choose_version(environ, webob.Request(environ))  # a client may ask so whether we have its version
            return _send(200, _encode(_versions(environ)), [], start_response)
        return self.api(environ, start_response)


def _versions(environ: WSGIEnvironment) -> dict[str, Json]:
    return {"versions": [{"id": "v1.0", "status": "CURRENT", "min_version": versions.text(versions.MIN),
                          "max_version": versions.text(versions.MAX),
                          "links": [{"rel": "self", "href": environ.get("SCRIPT_NAME", "")}]}]}


class Dispatcher:
    """A WSGI application behind authentication. Errors are raised, not answered."""

    def __init__(self, site: Site) -> None:
        self.router: Router[Route] = Router(ROUTES)
        self.site = site

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        http = webob.Request(environ)
        version = _choose_version(environ, http)
        row, values = self._find(environ, version)
        request = Request(self.site, environ["nova.context"], version, environ.get("SCRIPT_NAME", ""), row.policy)
        request.host = http.host_url
        if not row.looks_first:
            request.authorize()
        named = _canonical(values)
        _check_accept(http)
        request.query = _query(row, environ, version)
        request.body = _body(row, http, version)
        answer = row.handler(request, **named)
        if not request.policy_asked:
            raise errors.Bug(f"{row.method} {row.path} did not ask its policy rule")
        return self._answer(request, row, answer, start_response)

    def _find(self, environ: WSGIEnvironment, version: int) -> tuple[Route, dict[str, str]]:
        """placement.NoSuchPath; placement.MethodNotAllowed: no version has the method here, or this one has others."""
        path, method = paths.text_of(environ), environ["REQUEST_METHOD"]
        if path is None:
            raise errors.placement.NoSuchPath
        path = f"/{path.removeprefix('/')}"
        rows = self.router.rows(path)
        now = [row for row in rows if within(version, row.since, row.until)]
        if not rows or not now and any(row.method == method for row in rows):
            raise errors.placement.NoSuchPath
        row = next((row for row in now if row.method == method), None)
        if row is None:
            environ[faults.ALLOW_KEY] = ", ".join(sorted({row.method for row in now or rows}))
            raise errors.placement.MethodNotAllowed(method=_method(environ))
        found = self.router.match(method, path)
        return row, found[1] if found else {}

    def _answer(self, request: Request, row: Route, answer: object, start_response: StartResponse,
                ) -> Iterable[bytes]:
        told = answer if isinstance(answer, Answer) else Answer(answer)
        content = b"" if told.body is None else _encode(told.body)
        status = told.status or (204 if told.body is None else 200)
        headers = []
        if told.location is not None:
            headers.append(("location", request.host + request.prefix + told.location))
        if (content or told.at or row.method == "GET") and versions.answers_have_times(request.version):
            headers += [("last-modified", http_date(told.at)), ("cache-control", "no-cache")]
        return _send(status, content, headers, start_response)


def _method(environ: WSGIEnvironment) -> str:
    return str(environ["REQUEST_METHOD"])[:20]


def _choose_version(environ: WSGIEnvironment, http: webob.Request) -> int:
    """Noted in ``environ`` for the answer's headers."""
    version = versions.chosen(http.headers)
    environ[paths.VERSION_KEY] = versions.text(version)
    return version


def _canonical(named: dict[str, str]) -> dict[str, str]:
    """The path's parameters, uuids in their one form. placement.ResourceProviderNotFound, placement.ConsumerMalformed:
    no uuid where one must be."""
    for name, refusal in (("uuid", errors.placement.ResourceProviderNotFound),
                          ("consumer", errors.placement.ConsumerMalformed)):
        if name in named:
            if not is_uuid(named[name]):
                raise refusal(uuid=named[name])
            named[name] = canonical(named[name])
    return named


def _check_accept(http: webob.Request) -> None:
    """placement.NotAcceptable: the caller takes anything but JSON."""
    if "HTTP_ACCEPT" in http.environ and not http.accept.acceptable_offers([JSON]):
        raise errors.placement.NotAcceptable


def _query(row: Route, environ: WSGIEnvironment, version: int) -> Values:
    """The query by the row's table. placement.QueryBadValue, placement.QueryDuplicateKey."""
    try:
        pairs = query_pairs(environ)
    except (errors.api.BadQuery, ValueError) as error:  # ValueError: more parameters than the library reads
        raise errors.placement.QueryBadValue(name="query", reason=str(error)) from None
    times = collections.Counter(name for name, _ in pairs)
    for name, count in times.items():
        if count > 1 and not row.query.may_repeat(name, version):
            raise errors.placement.QueryDuplicateKey(name=name[:80])
    try:
        return row.query.check(pairs, version)
    except errors.api.BadInput as error:
        raise errors.placement.QueryBadValue(name=error.data["field"], reason=error.data["reason"]) from None


def _body(row: Route, http: webob.Request, version: int) -> object:
    """The body by the row's table. api.MediaType, placement.NoContentType, placement.MalformedBody, api.BadInput."""
    if row.body is None or not within(version, row.body_since, row.body_until):
        return None
    raw = http.body
    if raw and not http.environ.get("CONTENT_TYPE"):
        raise errors.placement.NoContentType
    if not raw and not http.environ.get("CONTENT_TYPE"):
        raise errors.api.MediaType(content_type="(none)")
    value = bodies.read(http)
    if value is None and not raw:
        raise errors.placement.MalformedBody(reason="the request needs a body.")
    return row.body.check(value, version)


def _send(status: int, content: bytes, headers: list[tuple[str, str]], start_response: StartResponse,
          ) -> Iterable[bytes]:
    length = [] if status == 204 else [("content-length", str(len(content)))]
    kind = [("content-type", JSON)] if content else []
    start_response(f"{status} {responses[status]}", [*kind, *length, *headers])
    return [content] if content else []
