"""Identification of the caller: the context of a request, from Keystone's token check or from ``noauth2`` headers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypedDict
from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

import msgspec
import webob

from nova import context as contexts
from nova.context import RequestContext
from nova.http_connection_limit import HOLDER
from nova.policies import Policy

KEYSTONE, NOAUTH = "keystone", "noauth2"
#: Roles of these users without Keystone; any other user is a member of the project.
NOAUTH_ROLES = {"admin": ("admin", "manager", "member", "reader"), "service": ("service",)}
UNAUTHORIZED = b"Authentication required"


class CallerFields(TypedDict, total=False):
    """Fields of the RequestContext that identify the caller."""

    user_id: str | None
    project_id: str | None
    user_name: str | None
    project_name: str | None
    user_domain_id: str | None
    domain_id: str | None
    project_domain_id: str | None
    token: str | None
    roles: tuple[str, ...]
    system_scope: str | None


class Context:
    """Base: creates ``environ["nova.context"]`` from the fields of :meth:`identify`, and runs the request in it."""

    def __init__(self, application: WSGIApplication, policy: Policy) -> None:
        self.application = application
        self.policy = policy

    def identify(self, headers: Mapping[str, str]) -> CallerFields | None:
        """Return fields of the RequestContext; None if the headers name no user."""
        raise NotImplementedError

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        facts = self.identify(webob.Request(environ).headers)
        if facts is None:
            return unauthorized(start_response)
        context = RequestContext(request_id=environ["nova.request_id"],
                                 global_request_id=environ["nova.global_request_id"],
                                 traceparent=contexts.current().traceparent, **facts)
        environ[HOLDER] = context.project_id
        environ["nova.context"] = context = msgspec.structs.replace(context, is_admin=self.policy.is_admin(context))
        with contexts.entered(context):
            return self.application(environ, start_response)


class KeystoneContext(Context):
    """The context from the headers of keystonemiddleware's auth_token, which has validated the token."""

    def identify(self, headers: Mapping[str, str]) -> CallerFields | None:
        if headers.get("X-Identity-Status") != "Confirmed" or not headers.get("X-User-Id"):
            return None
        roles = (role.strip() for role in headers.get("X-Roles", "").split(","))
        return {"user_id": headers.get("X-User-Id"), "project_id": headers.get("X-Project-Id"),
                "user_name": headers.get("X-User-Name"), "project_name": headers.get("X-Project-Name"),
                "user_domain_id": headers.get("X-User-Domain-Id"), "domain_id": headers.get("X-Domain-Id"),
                "project_domain_id": headers.get("X-Project-Domain-Id"), "token": headers.get("X-Auth-Token"),
                "roles": tuple(role for role in roles if role),
                "system_scope": headers.get("Openstack-System-Scope")}


class NoAuth(Context):
    """Authentication that trusts the caller, for tests on one machine. User ``admin`` is an administrator, ``service``
    a service.

    The caller is in ``X-Auth-Token: USER:PROJECT``, or in X-Auth-User and X-Auth-Project-Id. A request for the root of
    the API that only names a user is a log-in: the response headers contain the token and the endpoint.
    """

    def identify(self, headers: Mapping[str, str]) -> CallerFields | None:
        token = headers.get("X-Auth-Token")
        user, _, project = (token or "").partition(":")
        user = user or headers.get("X-Auth-User") or ""
        if not user:
            return None
        project = project or headers.get("X-Auth-Project-Id") or user
        return {"user_id": user, "project_id": project, "user_name": user, "project_name": project, "token": token,
                "roles": NOAUTH_ROLES.get(user, ("member", "reader"))}

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        request = webob.Request(environ)
        if is_log_in(request):
            user = request.headers["X-Auth-User"]
            project = request.headers.get("X-Auth-Project-Id") or user
            start_response("204 No Content", [("X-Auth-Token", f"{user}:{project}"),
                                              ("X-Server-Management-Url", request.path_url.rstrip("/"))])
            return [b""]
        return super().__call__(environ, start_response)


def is_log_in(request: webob.Request) -> bool:
    """Return whether a client of ``noauth2`` requests a token: GET of the root with X-Auth-User and without
    X-Auth-Token."""
    return (request.method == "GET" and "X-Auth-Token" not in request.headers
            and "X-Auth-User" in request.headers and request.path_info in ("", "/"))


def unauthorized(start_response: StartResponse) -> Iterable[bytes]:
    """Send a 401 response, in plain text."""
    start_response("401 Unauthorized", [("Content-Type", "text/plain; charset=UTF-8"),
                                        ("Content-Length", str(len(UNAUTHORIZED)))])
    return [UNAUTHORIZED]
