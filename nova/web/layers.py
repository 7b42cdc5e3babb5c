"""The middleware around an API, as configured."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

from keystonemiddleware import auth_token
from oslo_config import cfg
from oslo_middleware import cors, http_proxy_to_wsgi, sizelimit

from nova import errors
from nova.conf._options import Options, oslo_conf
from nova.policies import Policy
from nova.web import auth
from nova.web.fair_share import ProjectLimiter, ValidatedTokens
from nova.web.paths import ExcInfo
from nova.web.stacking import Middleware

LOG = logging.getLogger(__name__)

#: Headers that a browser's script may send and read, for any API.
CORS_REQUEST = ("X-Auth-Token", "X-Openstack-Request-Id", "X-Identity-Status", "X-Roles", "X-Service-Catalog",
                "X-User-Id", "X-Tenant-Id")
CORS_ANSWER = ("X-Auth-Token", "X-Openstack-Request-Id", "X-Subject-Token", "X-Service-Token")
CORS_METHODS = ("GET", "PUT", "POST", "DELETE", "PATCH")


def authentication(conf: Options, policy: Policy) -> Middleware:
    """Return the middleware for ``[api]auth_strategy``: Keystone's token check, or trust in the caller."""
    if conf.api.auth_strategy == auth.NOAUTH:
        return lambda application: auth.NoAuth(application, policy)

    return lambda application: TokenAuthentication(auth.KeystoneContext(application, policy), conf)


def library_middleware(conf: cfg.ConfigOpts, version_headers: Sequence[str], always_cors: bool = True
                       ) -> tuple[Middleware, ...]:
    """Return oslo.middleware's layers, each skipped if it would have no effect: each costs 0.1 ms. ``always_cors``
    False: the API handles OPTIONS itself while ``[cors]allowed_origin`` is not set; with CORS the response is always
    200."""
    cors.set_defaults(allow_headers=[*CORS_REQUEST, *version_headers], allow_methods=list(CORS_METHODS),
                      expose_headers=[*CORS_ANSWER, *version_headers])
    conf.register_opts(cors.CORS_OPTS, "cors")
    of_browsers = only_with(("HTTP_ORIGIN",), lambda application: cors.CORS(application, conf))
    return (
        *((of_browsers,) if always_cors or conf.cors.allowed_origin else ()),
        only_with(("HTTP_FORWARDED", "HTTP_X_FORWARDED_PROTO", "HTTP_X_FORWARDED_HOST", "HTTP_X_FORWARDED_PREFIX",
                   "HTTP_X_FORWARDED_FOR"),
                  lambda application: http_proxy_to_wsgi.HTTPProxyToWSGI(application, conf)),
        only_with(("CONTENT_LENGTH", "HTTP_TRANSFER_ENCODING"),
                  lambda application: BodyLimit(application, conf)),
    )


def only_with(keys: tuple[str, ...], make: Middleware) -> Middleware:
    """Return the middleware for requests whose environ has a value at one of ``keys``; other requests skip it."""

    def around(application: WSGIApplication) -> WSGIApplication:
        inner = make(application)

        def choose(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
            chosen = inner if any(environ.get(key) for key in keys) else application
            return chosen(environ, start_response)

        return choose

    return around


MOST_DIGITS = 18  # a longer number is not a valid length, and is expensive to parse


class BodyLimit:
    """The limit of request bodies: oslo.middleware's, which counts the bytes that are read. Bodies with a declared
    length are checked before it, because the library's own response to them does not state the limit.
    """

    def __init__(self, application: WSGIApplication, conf: cfg.ConfigOpts) -> None:
        self.counting = sizelimit.RequestBodySizeLimiter(application, conf)
        self.most: int = conf.oslo_middleware.max_request_body_size

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        length = environ.get("CONTENT_LENGTH") or ""
        digits = length.lstrip("0") if length.isdecimal() else ""
        if len(digits) <= MOST_DIGITS and int(digits or 0) <= self.most:
            return self.counting(environ, start_response)
        text = f"The body of the request is too large: at most {self.most} bytes are accepted.\n".encode()
        start_response("413 Request Entity Too Large", [("Content-Type", "text/plain; charset=UTF-8"),
                                                        ("Content-Length", str(len(text)))])
        return [text]

LONGEST_TOKEN = 8192  # maximum header size of web servers, Keystone's too; all of its tokens are much shorter

TOKENS = ("HTTP_X_AUTH_TOKEN", "HTTP_X_STORAGE_TOKEN", "HTTP_X_SERVICE_TOKEN")  # the ones that the library reads


class TokenAuthentication:
    """Authentication with keystonemiddleware's auth_token, configured by ``[keystone_authtoken]``. Its 503 becomes an
    error of the API. Projects share the worker fairly, by their recently valid tokens. Requests with other tokens share
    by address: each costs a call to Keystone."""

    def __init__(self, application: WSGIApplication, conf: Options) -> None:
        self.checker = auth_token.AuthProtocol(application, {"oslo_config_config": oslo_conf(conf),
                                                                "oslo_config_project": "nova"})
        self._turns, self._good = ProjectLimiter(shared=conf.api.project_requests_at_once), ValidatedTokens()

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        token = environ.get("HTTP_X_AUTH_TOKEN", "")
        project = self._good.project_of(token)
        turn = (self._turns.unauthenticated(environ.get("REMOTE_ADDR", "")) if project is None
                else self._turns.turn(project))
        with turn:
            content = self._checked(environ, start_response)
        context = environ.get("nova.context")
        self._good.note(token, context and (context.project_id or ""))
        return content

    def _checked(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        held: list[str] = []
        if any(len(environ.get(name, "")) > LONGEST_TOKEN for name in TOKENS):  # not from Keystone: 401, as for others
            for name in TOKENS:
                environ.pop(name, None)

        def start(status: str, headers: list[tuple[str, str]], exc_info: ExcInfo | None = None
                  ) -> Callable[[bytes], object]:
            if "nova.context" not in environ and status.startswith("503"):
                held.append(status)
                return lambda data: None
            return start_response(status, headers, exc_info)

        content = self.checker(environ, start)
        if held:
            LOG.warning("Keystone does not respond: refused a request with 503")
            raise errors.api.IdentityAway
        return content
