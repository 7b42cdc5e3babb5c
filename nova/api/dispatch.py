"""The compute API proper, below /v2.1 and /v2: finds the operation, checks in the contract's order, answers."""

from __future__ import annotations

import re
from collections.abc import Iterable
from http.client import responses
from wsgiref.types import StartResponse, WSGIEnvironment

import msgspec
import webob

from nova import errors
from nova.api import routing, versions
from nova.api.request import Answer, Request, Site
from nova.context import RequestContext
from nova.web import bodies, paths
from nova.web.formats import is_uuid
from nova.web.query import query_pairs
from nova.web.routing import Router
from nova.web.schema import Values, shown

JSON = "application/json"
MEDIA_TYPES = ("", JSON, "application/vnd.openstack.compute+json")
_PROJECT = re.compile(r"[0-9a-f-]+")
_encode = msgspec.json.Encoder().encode


class Dispatcher:
    """A WSGI application; SCRIPT_NAME ends in the version's part of the path. Errors are raised, not answered."""

    def __init__(self, router: Router[routing.Route], site: Site, legacy: bool = False) -> None:
        self.router = router
        self.site = site
        self.legacy = legacy

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        context: RequestContext = environ["nova.context"]
        path = paths.text_of(environ)
        found = None if path is None else self._find(environ["REQUEST_METHOD"], path, context)
        if path is None or found is None:
            return plain_not_found(start_response)
        rows, values, project = found
        request = self._request(environ, context, project)
        body = bodies.read(request.http, MEDIA_TYPES)
        row = self._row(rows, body, request)
        request.rule, request.route_path = row.policy, _after_project(path, project)
        self._check(request, row, body)
        if row.policy is not None and not row.looks_first:
            request.authorize()
        _check_server(row, values)
        answer = row.handler(request, **values)
        if row.policy is not None and not request.policy_asked:
            raise errors.Bug(f"{row.id} did not ask its policy rule")
        return self._answer(answer, row.success(request.version), start_response)

    def _find(self, method: str, path: str, context: RequestContext,
              ) -> tuple[list[routing.Route], dict[str, str], str | None] | None:
        """(rows, parameters, project in the path); a first segment that may be a project id is taken for one."""
        path = path.removeprefix("/")
        found = self.router.match(method, f"/{path}")
        if found is not None:
            return (*found, None)
        project, slash, rest = path.partition("/")
        if slash and (_PROJECT.fullmatch(project) or project == context.project_id):
            found = self.router.match(method, f"/{rest}")
        return None if found is None else (*found, project)

    def _request(self, environ: WSGIEnvironment, context: RequestContext, project: str | None) -> Request:
        http = webob.Request(environ)
        version = versions.LEGACY if self.legacy else choose_version(environ, http)
        return Request(http, self.site, context, version, self.legacy, project)

    def _row(self, rows: list[routing.Route], body: object, request: Request) -> routing.Route:
        """The row for this action and version. Order: action key known, project in the path, operation at version."""
        if any(row.action for row in rows):
            rows = [row for row in rows if row.action == _action_of(body)]
            if not rows:
                raise errors.api.NoSuchAction(name=shown(", ".join(body)) if isinstance(body, dict) else "none")
        if request.project_in_url not in (None, request.context.project_id):
            raise errors.api.WrongProject(in_url=request.project_in_url, in_token=request.context.project_id)
        row = routing.at_version(rows, request.version)
        if row is None:
            raise errors.api.NotInVersion
        return row

    def _check(self, request: Request, row: routing.Route, body: object) -> None:
        if row.body is not None:
            if body is None and not row.body.may_be_missing:
                raise errors.api.BadInput(field="body", value="null",
                                          reason="The request needs a body, an object in JSON.")
            request.body = row.body.check(body, request.version, self.legacy)
        request.query = (Values({}) if row.query is None
                         else row.query.check(query_pairs(request.http.environ), request.version))

    def _answer(self, answer: object, status: int, start_response: StartResponse) -> Iterable[bytes]:
        headers: tuple[tuple[str, str], ...] = ()
        if isinstance(answer, Answer):
            status, headers, answer = answer.status or status, answer.headers, answer.body
        content = b"" if answer is None else answer if isinstance(answer, bytes) else _encode(answer)
        length = [] if status == 204 else [("Content-Type", JSON), ("Content-Length", str(len(content)))]
        start_response(f"{status} {responses[status]}", [*length, *headers])
        return [content]


def choose_version(environ: WSGIEnvironment, http: webob.Request) -> int:
    """The version to serve, noted in ``environ`` for the answer's headers (also when it is out of range)."""
    try:
        version = versions.chosen(http.headers)
    except errors.api.VersionOutOfRange as error:
        environ[paths.VERSION_KEY] = error.data["asked"]
        raise
    environ[paths.VERSION_KEY] = versions.text(version)
    return version


def plain_not_found(start_response: StartResponse) -> Iterable[bytes]:
    """What unknown paths, and known ones with another method, get: plain text, no version headers."""
    content = b"404 Not Found\n\nThe resource could not be found.\n"
    start_response("404 Not Found", [("Content-Type", "text/plain; charset=UTF-8"),
                                     ("Content-Length", str(len(content)))])
    return [content]


def _check_server(row: routing.Route, named: dict[str, str]) -> None:
    """server.NotFound for an id that is none, where the handler would look it up first."""
    if row.looks_first and "server_id" in named and not is_uuid(named["server_id"]):
        raise errors.server.NotFound(server=named["server_id"])


def _after_project(path: str, project: str | None) -> str:
    return path.removesuffix("/") if project is None else path.removesuffix("/").removeprefix(f"/{project}")


def _action_of(body: object) -> str | None:
    return next(iter(body)) if isinstance(body, dict) and len(body) == 1 else None
