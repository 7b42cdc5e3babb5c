"""Processing of a request, the same for every API: a row of its routes, the checks in their order, and the handler."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from http.client import responses
from typing import Any, Generic, TypeVar
from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

import msgspec
import webob

from nova import errors
from nova.context import RequestContext
from nova.policies import Policy
from nova.web import paths
from nova.web.routing import APIRoute
from nova.web.schema import Values

Headers = list[tuple[str, str]]
_encode = msgspec.json.Encoder().encode


@dataclass(frozen=True)
class Site:
    """The parts of an application that are the same for all requests."""

    conductor: Any  # a client of the API's contract
    policy: Policy


@dataclass
class APIRequest:
    """An API request: its operation, the values of the path's parameters, and the version, N of MAJOR.N. ``query`` and
    ``body`` are available to the handler, after their validation.
    """

    http: webob.Request
    site: Site
    context: RequestContext
    version: int
    row: APIRoute
    named: dict[str, str]
    query: Values = field(default_factory=lambda: Values({}))
    body: Any = None
    policy_asked: bool = False

    @property
    def conductor(self) -> object:
        """Client of the API's contract: nova.rpc.contracts.conductor, or the one of Placement."""
        return self.site.conductor

    def authorize(self, project_id: str | None = None, user_id: str | None = None, rule: str | None = None) -> None:
        """Raise Forbidden unless the operation's rule (or ``rule``) permits the caller to act on the project's and
        user's resources.

        Without a project the target is the caller's own.
        """
        self.policy_asked = True
        name = rule or self.row.policy
        if name is not None:
            self.site.policy.authorize(self.context, name, self.target(project_id, user_id))

    def target(self, project_id: str | None, user_id: str | None) -> dict[str, str | None]:
        """Return the target of a policy rule, as oslo.policy defines it; None means the caller's own."""
        return {"project_id": project_id or self.context.project_id, "user_id": user_id or self.context.user_id}


Asked = TypeVar("Asked", bound=APIRequest)


class Dispatcher(Generic[Asked]):
    """Base of APIs: a WSGI application behind authentication. Errors are raised, not converted to responses.

    ``checks``: conditions that are checked before the handler is called, in the order of the API's contract.
    """

    checks: tuple[Callable[[Asked], None], ...]

    def begin(self, environ: WSGIEnvironment) -> Asked | None:
        """Return the request with its operation; None if the path has none, so that even the API's own error format is
        not used."""
        raise NotImplementedError

    def reply(self, request: Asked, answer: object) -> tuple[int, Headers, bytes]:
        """Return status, headers and content for the handler's result."""
        raise NotImplementedError

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        request = self.begin(environ)
        if request is None:
            return plain_not_found(start_response)
        row = request.row
        environ[paths.ROUTE_KEY] = row.id
        for check in self.checks:
            check(request)
        answer = row.handler(request, **request.named)
        if row.policy is not None and not request.policy_asked:
            raise errors.Bug(f"{row.id} did not check its policy rule")
        return send(start_response, *self.reply(request, answer))


def check_policy(request: APIRequest) -> None:
    """Raise Forbidden if the row's rule denies it. Skipped for handlers that check it themselves, after they have read
    the object."""
    if request.row.policy is not None and not request.row.looks_first:
        request.authorize()


class MountedApi:
    """A mount of other applications next to an API, by the first part of the path. Also records the path for logs."""

    def __init__(self, application: WSGIApplication, beside: dict[str, WSGIApplication]) -> None:
        self.application = application
        self.beside = beside

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        path = environ.get("PATH_INFO", "")
        environ["nova.path"] = environ.get("SCRIPT_NAME", "") + path
        application = self.beside.get(path.removeprefix("/").partition("/")[0], self.application)
        return application(environ, start_response)


def encoded(body: object) -> bytes:
    """Return ``body`` as JSON; None as empty bytes; bytes unchanged."""
    return b"" if body is None else body if isinstance(body, bytes) else _encode(body)


def send(start_response: StartResponse, status: int, headers: Headers, content: bytes) -> Iterable[bytes]:
    """Send the complete response of a WSGI application (PEP 3333)."""
    start_response(f"{status} {responses[status]}", headers)
    return [content]


def plain_not_found(start_response: StartResponse) -> Iterable[bytes]:
    """Send the response for unknown paths, or known ones with another method: plain text, without version headers."""
    content = b"404 Not Found\n\nThe resource could not be found.\n"
    return send(start_response, 404, [("Content-Type", "text/plain; charset=UTF-8"),
                                      ("Content-Length", str(len(content)))], content)
