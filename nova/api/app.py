"""Puts the API together: the application from its parts, and the parts from a configuration."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from oslo_config import cfg
from oslo_middleware import cors, healthcheck, http_proxy_to_wsgi

from nova.api import versions
from nova.api.absent import ABSENT
from nova.api.discovery import Root
from nova.api.dispatch import Dispatcher
from nova.api.middleware import auth, body_limit
from nova.api.middleware.access_log import AccessLog
from nova.api.middleware.errors import Errors
from nova.api.middleware.request_id import RequestId
from nova.api.request import Options, Site
from nova.api.routes import ROUTES
from nova.policies import Policy

Application = Callable[..., Any]
Middleware = Callable[[Application], Application]

#: Headers a browser's script may send and read.
CORS_REQUEST = ["X-Auth-Token", "X-Openstack-Request-Id", "X-Identity-Status", "X-Roles", "X-Service-Catalog",
                "X-User-Id", "X-Tenant-Id", versions.OLD_HEADER, versions.HEADER]
CORS_ANSWER = ["X-Auth-Token", "X-Openstack-Request-Id", "X-Subject-Token", "X-Service-Token",
               versions.OLD_HEADER, versions.HEADER]
CORS_METHODS = ["GET", "PUT", "POST", "DELETE", "PATCH"]


def build(site: Site, authenticate: Middleware, outer: tuple[Middleware, ...] = (),
          beside: dict[str, Application] | None = None) -> Application:
    """The whole API. ``authenticate`` sets ``environ["nova.context"]``; ``outer``: the first sees a request first.

    ``beside`` is served beside the versions: first part of the path -> application.
    """
    rows = (*ROUTES, *ABSENT)
    mounted = {"v2.1": authenticate(Dispatcher(rows, site)), "v2": authenticate(Dispatcher(rows, site, legacy=True))}
    application: Application = Errors(Root(mounted, beside or {}, site.options))
    layers: tuple[Middleware, ...] = (RequestId, AccessLog, *outer)
    for middleware in reversed(layers):
        application = middleware(application)
    return application


def from_conf(conductor: Any, conf: cfg.ConfigOpts) -> Application:
    """The API as ``conf`` says; ``conductor`` is a client of ConductorRPC."""
    policy = Policy(conf)
    options = Options(max_limit=conf.api.max_limit, compute_link_prefix=conf.api.compute_link_prefix,
                      glance_link_prefix=conf.api.glance_link_prefix,
                      enable_instance_password=conf.api.enable_instance_password,
                      password_length=conf.password_length,
                      skips_silent_cells=conf.api.list_records_by_skipping_down_cells)
    health = healthcheck.Healthcheck(None, conf)
    return build(Site(conductor, policy, options), authentication(conf, policy), _library_middleware(conf),
                 {"healthcheck": health})


def authentication(conf: cfg.ConfigOpts, policy: Policy) -> Middleware:
    """By ``[api]auth_strategy``: Keystone's token check, or believing the caller."""
    if conf.api.auth_strategy == auth.NOAUTH:
        return lambda application: auth.NoAuth(application, policy)
    from nova.api.middleware.keystone import TokenCheck

    return lambda application: TokenCheck(auth.KeystoneContext(application, policy), conf)


def _library_middleware(conf: cfg.ConfigOpts) -> tuple[Middleware, ...]:
    """oslo.middleware's, each skipped where it would do nothing: passing through one costs 0.1 ms."""
    cors.set_defaults(allow_headers=CORS_REQUEST, expose_headers=CORS_ANSWER, allow_methods=CORS_METHODS)
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

        def choose(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
            chosen = inner if any(environ.get(key) for key in keys) else application
            return chosen(environ, start_response)

        return choose

    return around
