"""Nova's credentials for other services, and a common way to call them.

Credentials come from the first of ``[<service>]``, ``[service_user]`` and ``[keystone_authtoken]`` that names an
``auth_type``. Without any, calls carry no token (``noauth2`` clouds), and the address must be configured. Every call
has a timeout; every failure becomes a nova error that names the service.
"""

from __future__ import annotations

import html
import itertools
import logging
import math
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypedDict

import requests
from keystoneauth1 import adapter, exceptions, loading, noauth, plugin
from keystoneauth1 import session as ksession

from nova import concurrency, context, errors, metrics, tracing
from nova.conf._options import Options, oslo_conf

LOG = logging.getLogger(__name__)

CONNECT_TIMEOUT_S = 10.0
READ_TIMEOUT_S = 60.0
SHORTEST_S = 0.001  # 0 would mean forever
LATE_S = 5.0  # with less time left, no call that is not idempotent is started: its result could not be awaited
FALLBACKS = ("service_user", "keystone_authtoken")

#: Seconds to connect and to read, or one number for both; None: unlimited.
Patience = float | tuple[float | None, float | None] | None


class CallOptions(TypedDict, total=False):
    """Arguments of :meth:`Caller.call`, most of which it passes to keystoneauth."""

    as_user: bool
    what: str
    headers: Mapping[str, str]
    params: Mapping[str, object] | Sequence[tuple[str, object]] | None
    json: object
    log: bool


@dataclass(frozen=True)
class Credentials:
    """Nova's credentials for one service: a session and an auth plugin. ``auth`` None: none are configured.
    ``section``: the configuration section of ``auth``."""

    session: ksession.Session
    auth: plugin.BaseAuthPlugin | None
    send_service_token: bool = False
    section: str = ""


def load(conf: Options, section: str) -> Credentials:
    """Return the credentials for the service of ``section``, read from ``conf`` (called by ``nova.cmd``).

    Raises config.Credentials if a section names an ``auth_type`` but lacks its options.
    """
    source = oslo_conf(conf)
    loading.register_session_conf_options(source, section)
    session = patient(loading.load_session_from_conf_options(source, section))
    session.timeout = session.timeout or READ_TIMEOUT_S
    for candidate in (section, *FALLBACKS):
        auth = load_auth(conf, candidate)
        if auth is not None:
            return Credentials(session, auth, conf.service_user.send_service_user_token, candidate)
    LOG.info("no credentials for the %s service: calls carry no token", section)
    return Credentials(session, None, section=section)


def source(conf: Options, section: str) -> str | None:
    """Return the section whose credentials :func:`load` uses for the service of ``section``; None if there are none.
    Raises config.Credentials."""
    return next((one for one in (section, *FALLBACKS) if load_auth(conf, one) is not None), None)


def patient(session: ksession.Session) -> ksession.Session:
    """Return the session, whose requests end by the deadline of this thread's caller. That includes implicit requests:
    for a token, for versions, and repetitions with a new token."""
    for scheme in ("http://", "https://"):
        session.mount(scheme, _Patient())
    return session


class _Patient(ksession.TCPKeepAliveAdapter):
    def send(self, request: requests.PreparedRequest, stream: bool = False, timeout: Patience = None,
             verify: bool | str = True, cert: str | tuple[str, str] | None = None, proxies: dict[str, str] | None = None
             ) -> requests.Response:
        return super().send(request, stream, _within(context.deadline().left_s, timeout), verify, cert, proxies)


def _within(left_s: float, timeout: Patience) -> Patience:
    """Return ``timeout`` limited to the time left. The format is that of requests: seconds, a pair to connect and to
    read, or None."""
    if left_s == math.inf:
        return timeout
    parts = timeout if isinstance(timeout, tuple) else (timeout, timeout)
    connect, read = (max(left_s if one is None else min(one, left_s), SHORTEST_S) for one in parts)
    return connect, read


def load_auth(conf: Options, section: str) -> plugin.BaseAuthPlugin | None:
    """Return the auth plugin of ``[section]``; None if it names no ``auth_type``. Raises config.Credentials."""
    source = oslo_conf(conf)
    loading.register_auth_conf_options(source, section)
    try:
        return loading.load_auth_from_conf_options(source, section)
    except exceptions.MissingRequiredOptions as error:
        raise errors.config.Credentials(section=section, reason=str(error)) from error
    except exceptions.NoMatchingPlugin:
        raise errors.config.Credentials(section=section, reason="its auth_type is not one of keystoneauth's: "
                                        f"{', '.join(sorted(loading.get_available_plugin_names()))}") from None


class _UserToken(plugin.BaseAuthPlugin):
    """Auth plugin with the user's own token, and the addresses of nova's catalog."""

    def __init__(self, token: str, catalog: plugin.BaseAuthPlugin | None, send_own: bool) -> None:
        super().__init__()
        self._token, self._catalog, self._send_own = token, catalog, send_own

    def get_headers(self, session: ksession.Session) -> dict[str, str]:
        headers = {"X-Auth-Token": self._token}
        if self._send_own and self._catalog is not None:
            own = self._catalog.get_token(session)
            if own:
                headers["X-Service-Token"] = own
        return headers

    def get_token(self, session: ksession.Session) -> str:
        return self._token

    def get_endpoint(self, session: ksession.Session, **kwargs: object) -> str | None:
        return self._catalog.get_endpoint(session, **kwargs) if self._catalog else None

    def invalidate(self) -> bool:
        return False


@dataclass(frozen=True)
class ServiceEndpoint:
    """The location of a service, and timeouts for it. ``addresses`` empty: use the catalog. ``deadline_s``: for all
    attempts of a call together."""

    name: str
    service_type: str
    addresses: tuple[str, ...] = ()
    region_name: str | None = None
    interfaces: tuple[str, ...] = ("internal", "public")
    retries: int = 3
    read_timeout_s: float = READ_TIMEOUT_S
    retry_wait_s: float = 0.5
    deadline_s: float = math.inf
    service_name: str | None = None


class Caller:
    """Calls one service. ``as_user``: use the token of the current request, if there is one."""

    def __init__(self, service: ServiceEndpoint, credentials: Credentials) -> None:
        self.service = service
        self._credentials = credentials
        self._turn = itertools.count()
        if not service.addresses and credentials.auth is None:
            LOG.warning("neither an address nor credentials are configured for the %s service", service.name)

    def call(self, method: str, path: str, *, as_user: bool = False, what: str = "such thing",
             **kwargs: object) -> requests.Response:
        """Return the answer to one request; idempotent methods are retried while the service does not answer.

        All attempts end before the callers of this thread stop waiting (:func:`nova.context.waited_for`). ``what``
        names the resource in a NotFound. Raises service.ResourceNotFound, service.Forbidden, service.Conflict,
        service.Invalid, service.Credentials (Keystone refuses nova's), or service.Unavailable.
        """
        last: errors.NovaError = errors.service.Unavailable(service=self.service.name,
                                                            reason="no time is left to ask it")
        if method == "POST" and context.deadline().left_s < LATE_S:
            raise last
        with context.waited_for(self.service.deadline_s):
            for attempt, address in enumerate(self._addresses(method)):
                pause = min(self.service.retry_wait_s * 2 ** (attempt - 1), 5) if attempt else 0
                if context.deadline().left_s <= pause:
                    break
                concurrency.sleep(pause)
                try:
                    return self._once(method, path, address, as_user, what, kwargs)
                except errors.service.Unavailable as error:
                    last = error
                    LOG.warning("%s %s of the %s service failed (attempt %d): %s", method, path, self.service.name,
                                attempt + 1, error)
        raise last

    def _addresses(self, method: str) -> Iterator[str | None]:
        """Yield the address of each attempt; each call starts at another one, so that all addresses share the load."""
        repeatable = method in ("GET", "HEAD", "DELETE", "PUT") and context.deadline().again
        attempts = 1 + (self.service.retries if repeatable else 0)
        known: tuple[str | None, ...] = self.service.addresses or (None,)
        start = next(self._turn)
        for attempt in range(attempts):
            yield known[(start + attempt) % len(known)]

    def _once(self, method: str, path: str, address: str | None, as_user: bool, what: str,
              kwargs: Mapping[str, object]) -> requests.Response:
        client = adapter.Adapter(
            self._credentials.session, auth=self._auth(as_user, address), service_type=self.service.service_type,
            interface=list(self.service.interfaces), service_name=self.service.service_name,
            region_name=self.service.region_name, endpoint_override=address,
            user_agent="nova", raise_exc=True, connect_retries=0, global_request_id=_request_id())
        with tracing.span(f"{method} {self.service.name}", tracing.CLIENT):
            if not as_user or not address or self._credentials.send_service_token:
                self._log_in()
            return self._timed(client, method, path, what, kwargs)

    def _timed(self, client: adapter.Adapter, method: str, path: str, what: str, kwargs: Mapping[str, object]
               ) -> requests.Response:
        left, began, status = max(context.deadline().left_s, SHORTEST_S), time.monotonic(), 0
        try:
            headers = {**kwargs.get("headers", {}), **tracing.headers()}  # type: ignore[dict-item]
            answer = client.request(path, method, timeout=(min(CONNECT_TIMEOUT_S, left),
                                                           min(self.service.read_timeout_s, left)),
                                    **{**kwargs, "headers": headers})
            status = answer.status_code
            return answer
        except (exceptions.ClientException, requests.RequestException) as error:
            status = getattr(error, "http_status", 0)
            raise self.translated(error, what) from error
        finally:
            metrics.OUTSIDE_REQUESTS.labels(self.service.name, method, str(status or "none")).observe(
                time.monotonic() - began)

    def _log_in(self) -> None:
        """Get nova's own token before a call that needs it, if only for the catalog: Keystone's refusal of nova's
        credentials must not appear as the service's answer to its user. Raises service.Credentials; service.Unavailable
        for Keystone."""
        own, began = self._credentials.auth, time.monotonic()
        if own is None:
            return
        try:
            own.get_token(self._credentials.session)
        except (exceptions.ClientException, requests.RequestException) as error:
            status = str(getattr(error, "http_status", 0) or "none")
            metrics.OUTSIDE_REQUESTS.labels("identity", "POST", status).observe(time.monotonic() - began)
            raise self._not_logged_in(error) from error

    def _not_logged_in(self, error: Exception) -> errors.NovaError:
        if not isinstance(error, exceptions.Unauthorized | exceptions.Forbidden):
            return errors.service.Unavailable(service="identity", reason=_reason(error))
        refused = self.credentials_refused(_reason(error))
        LOG.error("%s %s", refused.message, refused.cure)
        return refused

    def credentials_refused(self, reason: object) -> errors.Unavailable:
        """Return the error that names nova's own credentials, and their configuration section."""
        return errors.service.Credentials(service=self.service.name, section=self._credentials.section, reason=reason)

    def _auth(self, as_user: bool, address: str | None) -> plugin.BaseAuthPlugin:
        own = self._credentials.auth
        token = context.current().token if as_user else None
        if token:
            return _UserToken(token, own, self._credentials.send_service_token)
        if as_user and own is not None:  # the user's permissions differ from nova's
            raise errors.service.Forbidden(service=self.service.name, reason="the request has no token of its user")
        return own or noauth.NoAuth(endpoint=address)

    def translated(self, error: Exception, what: str) -> errors.NovaError:
        """Return the nova error for a failed call."""
        name, reason = self.service.name, _reason(error)
        status = getattr(error, "http_status", None)
        if status == 404 and not isinstance(error, exceptions.EndpointNotFound):
            return errors.service.ResourceNotFound(service=name, what=what)
        if status in (401, 403):
            return errors.service.Forbidden(service=name, reason=reason)
        if status in (409, 412):
            return errors.service.Conflict(service=name, reason=reason)
        if status is not None and 400 <= status < 500 and status not in (408, 429):
            return errors.service.Invalid(service=name, reason=reason)
        return errors.service.Unavailable(service=name, reason=reason)


def _request_id() -> str | None:
    """Return the id of the current request, which the other service logs, too."""
    serving = context.current_or_none()
    return (serving.global_request_id or serving.request_id) if serving else None


def _explained(details: object) -> str:
    """Return the text of an HTML error page of a service as one line; empty if there is none."""
    page = details if isinstance(details, str) else ""
    found = re.search(r"<body>(?:\s*<h1>[^<]*</h1>)?(.*?)</body>", page, re.DOTALL)
    text = html.unescape(re.sub(r"<[^>]*>", " ", found[1])) if found else ""
    return " ".join(text.split())[:200]


def _reason(error: Exception) -> str:
    """Return a one-line description of ``error``, without the request's own text."""
    if isinstance(error, exceptions.HttpError):
        said = _explained(error.details) if 400 <= error.http_status < 500 else ""
        if said:
            return f"{error.http_status} {said}"
        return f"{error.http_status} {error.message or error.details or ''}".strip()
    if isinstance(error, exceptions.EndpointNotFound | exceptions.EmptyCatalog):
        return "the catalog has no address for it"
    if isinstance(error, requests.Timeout | exceptions.ConnectTimeout):
        return "timeout"
    return str(error).splitlines()[0][:200] if str(error) else type(error).__name__
