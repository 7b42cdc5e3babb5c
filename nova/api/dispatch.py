"""The compute API under /v2.1 and /v2: find the operation, check in the contract's order, and respond."""

from __future__ import annotations

import re
from wsgiref.types import WSGIEnvironment

import webob

from nova import errors
from nova.api import versions
from nova.api.request import Answer, ComputeSite, Request
from nova.api.routing import Route
from nova.context import RequestContext
from nova.model.base import JsonValue
from nova.web import bodies, paths
from nova.web.dispatch import Dispatcher, Headers, check_policy, encoded
from nova.web.formats import is_uuid
from nova.web.query import query_pairs
from nova.web.routing import Router, at_version
from nova.web.schema import shown

JSON = "application/json"
MEDIA_TYPES = ("", JSON, "application/vnd.openstack.compute+json")
_PROJECT = re.compile(r"[0-9a-f-]+")


def _check_body(request: Request) -> None:
    """Validate the body by the row's table. Raises api.BadInput."""
    table, body = request.row.body, request.body
    if table is None:
        request.body = None
    elif body is None and not table.may_be_missing:
        raise errors.api.BadInput(field="body", value="null", reason="The request needs a body, an object in JSON.")
    else:
        request.body = table.check(body, request.version, request.legacy)


def _check_query(request: Request) -> None:
    """Validate the query by the row's table. Raises api.BadQuery, api.BadInput."""
    if request.row.query is not None:
        request.query = request.row.query.check(query_pairs(request.http.environ), request.version)


def _check_server(request: Request) -> None:
    """Raise server.NotFound for a malformed id, if the handler would look it up first."""
    if request.row.looks_first and "server_id" in request.named and not is_uuid(request.named["server_id"]):
        raise errors.server.NotFound(server=request.named["server_id"])


class ComputeAPI(Dispatcher[Request]):
    """The WSGI application of one version prefix; SCRIPT_NAME ends in that part of the path."""

    checks = (_check_body, _check_query, check_policy, _check_server)

    def __init__(self, router: Router[Route], site: ComputeSite, legacy: bool = False) -> None:
        self.router = router
        self.site = site
        self.legacy = legacy

    def begin(self, environ: WSGIEnvironment) -> Request | None:
        context: RequestContext = environ["nova.context"]
        path = paths.text_of(environ)
        found = None if path is None else self._find(environ["REQUEST_METHOD"], path, context)
        if path is None or found is None:
            return None
        rows, named, project = found
        http = webob.Request(environ)
        version = versions.LEGACY if self.legacy else versions.SERIES.choose(environ, http)
        body = self.read(http)
        row = _row([row for row in rows if self.legacy or not row.legacy], body, version, project, context)
        return Request(http, self.site, context, version, row, named, body=body, legacy=self.legacy,
                       project_in_url=project, route_path=_after_project(path, project))

    def read(self, http: webob.Request) -> JsonValue:
        """Return the decoded body, before its operation is known; None without a body."""
        return bodies.read(http, MEDIA_TYPES)

    def _find(self, method: str, path: str, context: RequestContext,
              ) -> tuple[list[Route], dict[str, str], str | None] | None:
        """Return (rows, parameters, project in the path). A first segment that may be a project id is taken as one."""
        path = path.removeprefix("/")
        found = self.router.match(method, f"/{path}")
        if found is not None:
            return (*found, None)
        project, slash, rest = path.partition("/")
        if slash and (_PROJECT.fullmatch(project) or project == context.project_id):
            found = self.router.match(method, f"/{rest}")
        return None if found is None else (*found, project)

    def reply(self, request: Request, answer: object) -> tuple[int, Headers, bytes]:
        given = answer if isinstance(answer, Answer) else Answer(answer)
        status, content = given.status or request.row.success(request.version), encoded(given.body)
        length = [] if status == 204 else [("Content-Type", JSON), ("Content-Length", str(len(content)))]
        return status, [*length, *given.headers], content


def _row(rows: list[Route], body: object, version: int, project: str | None, context: RequestContext) -> Route:
    """Return the row for this action and version. Check order: action key, project in the path, operation at
    version."""
    if any(row.action for row in rows):
        rows = [row for row in rows if row.action == _action_of(body)]
        if not rows:
            raise errors.api.NoSuchAction(name=shown(", ".join(body)) if isinstance(body, dict) else "none")
    if project not in (None, context.project_id):
        raise errors.api.WrongProject(in_url=project, in_token=context.project_id)
    served = at_version(rows, version)
    if not served:
        raise errors.api.NotInVersion
    return served[0]


def _after_project(path: str, project: str | None) -> str:
    return path.removesuffix("/") if project is None else path.removesuffix("/").removeprefix(f"/{project}")


def _action_of(body: object) -> str | None:
    return next(iter(body)) if isinstance(body, dict) and len(body) == 1 else None
