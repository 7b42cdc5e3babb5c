"""The middleware around an API, as a configuration says."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any
from wsgiref.types import StartResponse, WSGIEnvironment

from oslo_config import cfg
from oslo_middleware import cors, http_proxy_to_wsgi

from nova.policies import Policy
from nova.web import auth, body_limit

Application = Callable[..., Any]
Middleware = Callable[[Application], Application]

#: Headers a browser's script may send and read, whatever the API.
CORS_REQUEST = ("X-Auth-Token", "X-Openstack-Request-Id", "X-Identity-Status", "X-Roles", "X-Service-Catalog",
                "X-User-Id", "X-Tenant-Id")
CORS_ANSWER = ("X-Auth-Token", "X-Openstack-Request-Id", "X-Subject-Token", "X-Service-Token")
CORS_METHODS = ("GET", "PUT", "POST", "DELETE", "PATCH")


def stacked(application: Application, layers: Sequence[Middleware]) -> Application:
    """The application behind the layers; the first of them sees a request first."""
    for middleware in reversed(layers):
        application = middleware(application)
    return application


def authentication(conf: cfg.ConfigOpts, policy: Policy) -> Middleware:
    """By ``[api]auth_strategy``: Keystone's token check, or believing the caller."""
    if conf.api.auth_strategy == auth.NOAUTH:
        return lambda application: auth.NoAuth(application, policy)
    from nova.web.keystone import TokenCheck

    return lambda application: TokenCheck(auth.KeystoneContext(application, policy), conf)


def library_middleware(conf: cfg.ConfigOpts, version_headers: Sequence[str]) -> tuple[Middleware, ...]:
    """oslo.middleware's, each skipped where it would do nothing: passing through one costs 0.1 ms."""
    cors.set_defaults(allow_headers=[*CORS_REQUEST, *version_headers], allow_methods=list(CORS_METHODS),
                      expose_headers=[*CORS_ANSWER, *version_headers])
    return (
        only_with(("HTTP_ORIGIN",), lambda application: cors.CORS(application, conf)),
        only_with(("HTTP_FORWARDED", "HTTP_X_FORWARDED_PROTO", "HTTP_X_FORWARDED_HOST", "HTTP_X_FORWARDED_PREFIX",
                   "HTTP_X_FORWARDED_FOR"),
                  lambda application: http_proxy_to_wsgi.HTTPProxyToWSGI(application, conf)),
        only_with(("CONTENT_LENGTH", "HTTP_TRANSFER_ENCODING"),
                  lambda application: body_limit.BodyLimit(application, conf)),
    )


def only_with(keys: tuple[str, ...], make: Middleware) -> Middleware:
    """The middleware, for requests whose environ has a value at one of ``keys``; others go past it."""

    def around(application: Application) -> Application:
        inner = make(application)

        def choose(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
            chosen = inner if any(environ.get(key) for key in keys) else application
            return chosen(environ, start_response)

        return choose

    return around
