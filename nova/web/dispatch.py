"""From a request to its answer, the same way for every API: a row of its routes, checks in its order, the handler."""

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
from nova.model.base import Json
from nova.policies import Policy
from nova.web import paths
from nova.web.routing import APIRoute
from nova.web.schema import Values

Headers = list[tuple[str, str]]
_encode = msgspec.json.Encoder().encode


@dataclass(frozen=True)
class Site:
    """What an application is made of; the same for all requests."""

    conductor: Any  # a client of the API's contract
    policy: Policy


@dataclass
class APIRequest:
    """One request: its operation, the values of the path's parameters, and the version, N of MAJOR.N. ``query`` and
    ``body`` are the handler's when they are checked.
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
    def conductor(self) -> Json:
        """A client of the API's contract: nova.rpc.contracts.conductor, or that of Placement."""
        return self.site.conductor

    def authorize(self, project_id: str | None = None, user_id: str | None = None, rule: str | None = None) -> None:
        """Forbidden unless the operation's rule (or ``rule``) lets the caller act on what is the project's and user's.

        Without a project the target is the caller's own.
        """
        self.policy_asked = True
        name = rule or self.row.policy
        if name is not None:
            self.site.policy.authorize(self.context, name, self.target(project_id, user_id))

    def target(self, project_id: str | None, user_id: str | None) -> dict[str, str | None]:
        """What a policy rule is asked about (oslo.policy's target): None is the caller's own."""
        return {"project_id": project_id or self.context.project_id, "user_id": user_id or self.context.user_id}


Asked = TypeVar("Asked", bound=APIRequest)


class Dispatcher(Generic[Asked]):
    """Base: a WSGI application behind authentication. Errors are raised, not answered.

    ``checks``: what must hold before the handler is called, in the order of the API's contract.
    """

    checks: tuple[Callable[[Asked], None], ...]

    def begin(self, environ: WSGIEnvironment) -> Asked | None:
        """The request, its operation found; None where there is nothing, not even a fault of the API's own."""
        raise NotImplementedError

    def reply(self, request: Asked, answer: object) -> tuple[int, Headers, bytes]:
        """Status, headers and content of what the handler gave."""
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
            raise errors.Bug(f"{row.id} did not ask its policy rule")
        return send(start_response, *self.reply(request, answer))


def check_policy(request: APIRequest) -> None:
    """Forbidden by the row's rule; nothing where the handler asks it, once it has found what it is about."""
    if request.row.policy is not None and not request.row.looks_first:
        request.authorize()


class Beside:
    """What is mounted beside an API, by the first part of the path; all else is the API's. Notes the path for logs."""

    def __init__(self, application: WSGIApplication, beside: dict[str, WSGIApplication]) -> None:
        self.application = application
        self.beside = beside

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        path = environ.get("PATH_INFO", "")
        environ["nova.path"] = environ.get("SCRIPT_NAME", "") + path
        application = self.beside.get(path.removeprefix("/").partition("/")[0], self.application)
        return application(environ, start_response)


def encoded(body: object) -> bytes:
    """``body`` as JSON; None: nothing; bytes: as they are."""
    return b"" if body is None else body if isinstance(body, bytes) else _encode(body)


def send(start_response: StartResponse, status: int, headers: Headers, content: bytes) -> Iterable[bytes]:
    """The answer of a WSGI application (PEP 3333), whole."""
    start_response(f"{status} {responses[status]}", headers)
    return [content]


def plain_not_found(start_response: StartResponse) -> Iterable[bytes]:
    """What unknown paths, and known ones with another method, get: plain text, no version headers."""
    content = b"404 Not Found\n\nThe resource could not be found.\n"
    return send(start_response, 404, [("Content-Type", "text/plain; charset=UTF-8"),
                                      ("Content-Length", str(len(content)))], content)
