"""Who we are to the services next door, and one way to call them.

Credentials come from the first of ``[<service>]``, ``[service_user]`` and ``[keystone_authtoken]`` that names an
``auth_type``; with none of them calls carry no token (``noauth2`` clouds) and the address must be configured. Every
call has a timeout; every failure is one of ours and names the service.
"""

from __future__ import annotations

import html
import itertools
import logging
import math
import re
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import requests
from keystoneauth1 import adapter, exceptions, loading, noauth, plugin
from keystoneauth1 import session as ksession

from nova import concurrency, context, errors, metrics, tracing
from nova.conf.base import Options
from nova.model.base import Json

LOG = logging.getLogger(__name__)

CONNECT_TIMEOUT_S = 10.0
READ_TIMEOUT_S = 60.0
SHORTEST_S = 0.001  # 0 would be for ever
LATE_S = 5.0  # with less left nothing is begun that may not be repeated: nobody would learn what came of it
FALLBACKS = ("service_user", "keystone_authtoken")


@dataclass(frozen=True)
class Credentials:
    """Our own standing with one service: a session and what proves who we are. ``auth`` None: nothing does.
    ``section``: of the configuration, where ``auth`` is from."""

    session: ksession.Session
    auth: plugin.BaseAuthPlugin | None
    send_service_token: bool = False
    section: str = ""


def load(conf: Options, section: str) -> Credentials:
    """The credentials for the service of ``section``, read from ``conf`` (called by ``nova.cmd``).

    config.Credentials when a section names an ``auth_type`` but not what it needs.
    """
    loading.register_session_conf_options(conf, section)
    session = patient(loading.load_session_from_conf_options(conf, section))
    session.timeout = session.timeout or READ_TIMEOUT_S
    for candidate in (section, *FALLBACKS):
        auth = load_auth(conf, candidate)
        if auth is not None:
            return Credentials(session, auth, bool(conf.service_user.send_service_user_token), candidate)
    LOG.info("No credentials for the %s service: calls carry no token", section)
    return Credentials(session, None, section=section)


def source(conf: Options, section: str) -> str | None:
    """The section whose credentials :func:`load` takes for the service of ``section``; None: there are none.
    config.Credentials."""
    return next((one for one in (section, *FALLBACKS) if load_auth(conf, one) is not None), None)


def patient(session: ksession.Session) -> ksession.Session:
    """The session, none of whose requests lasts longer than its thread is waited for: those that nobody sees (for a
    token, for versions, once more with a new token) neither."""
    for scheme in ("http://", "https://"):
        session.mount(scheme, _Patient())
    return session


class _Patient(ksession.TCPKeepAliveAdapter):
    def send(self, request: Json, stream: bool = False, timeout: Json = None, *args: Json, **kwargs: Json) -> Json:
        return super().send(request, stream, _within(context.patience().left_s, timeout), *args, **kwargs)


def _within(left_s: float, timeout: object) -> Json:
    """``timeout`` as requests has it: seconds, to connect and to read, or None."""
    if left_s == math.inf:
        return timeout
    parts = timeout if isinstance(timeout, tuple) else (timeout, timeout)
    connect, read = (max(left_s if one is None else min(one, left_s), SHORTEST_S) for one in parts)
    return connect, read


def load_auth(conf: Options, section: str) -> plugin.BaseAuthPlugin | None:
    """What proves who we are, as ``[section]`` says; None when it names no ``auth_type``. config.Credentials."""
    loading.register_auth_conf_options(conf, section)
    try:
        return loading.load_auth_from_conf_options(conf, section)
    except exceptions.MissingRequiredOptions as error:
        raise errors.config.Credentials(section=section, reason=str(error)) from error
    except exceptions.NoMatchingPlugin:
        raise errors.config.Credentials(section=section, reason="its auth_type is none of keystoneauth's, which are "
                                        f"{', '.join(sorted(loading.get_available_plugin_names()))}") from None


class _UserToken(plugin.BaseAuthPlugin):
    """The user's own token, with the addresses of the catalog that we see."""

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
    """Where a service is and how patient we are with it. ``addresses`` empty: ask the catalog. ``deadline_s``: for all
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
    """Calls one service. ``as_user``: with the token of the request that is served, where there is one."""

    def __init__(self, service: ServiceEndpoint, credentials: Credentials) -> None:
        self.service = service
        self._credentials = credentials
        self._turn = itertools.count()
        if not service.addresses and credentials.auth is None:
            LOG.warning("Neither an address nor credentials are configured for the %s service", service.name)

    def call(self, method: str, path: str, *, as_user: bool = False, what: str = "such thing",
             **kwargs: object) -> requests.Response:
        """The answer to one request, tried again while nobody answers (for methods that may be repeated).

        All attempts end before those who wait for this thread go (:func:`nova.context.waited_for`).
        ``what`` names the thing in a NotFound. service.ResourceNotFound, service.Forbidden, service.Conflict,
        service.Invalid, service.Credentials (Keystone refuses ours), or service.Unavailable.
        """
        last: errors.NovaError = errors.service.Unavailable(service=self.service.name,
                                                            reason="no time is left to ask it")
        if method == "POST" and context.patience().left_s < LATE_S:
            raise last
        with context.waited_for(self.service.deadline_s):
            for attempt, address in enumerate(self._addresses(method)):
                pause = min(self.service.retry_wait_s * 2 ** (attempt - 1), 5) if attempt else 0
                if context.patience().left_s <= pause:
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
        """Whom to ask, attempt by attempt; another start for each call, so that all addresses share the load."""
        repeatable = method in ("GET", "HEAD", "DELETE", "PUT") and context.patience().again
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
        left, began, status = max(context.patience().left_s, SHORTEST_S), time.monotonic(), 0
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
        """Have a token of our own before the call that needs it, for the catalog alone perhaps: what Keystone says of
        our credentials must not be taken for the service's answer to its user. service.Credentials;
        service.Unavailable of Keystone."""
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
        """The error that names our own credentials, and the section of the configuration where they are from."""
        return errors.service.Credentials(service=self.service.name, section=self._credentials.section, reason=reason)

    def _auth(self, as_user: bool, address: str | None) -> plugin.BaseAuthPlugin:
        own = self._credentials.auth
        token = context.current().token if as_user else None
        if token:
            return _UserToken(token, own, self._credentials.send_service_token)
        if as_user and own is not None:  # what the user may is not what we may
            raise errors.service.Forbidden(service=self.service.name, reason="the request has no token of its user")
        return own or noauth.NoAuth(endpoint=address)

    def translated(self, error: Exception, what: str) -> errors.NovaError:
        """The error of ours that says what a failed call means."""
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
    """Of the request that is served: the other service's log names it, too."""
    serving = context.current_or_none()
    return (serving.global_request_id or serving.request_id) if serving else None


def _explained(details: object) -> str:
    """What a service says of a request that it refuses, as one line, where it says it as a page of HTML; or nothing."""
    page = details if isinstance(details, str) else ""
    found = re.search(r"<body>(?:\s*<h1>[^<]*</h1>)?(.*?)</body>", page, re.DOTALL)
    text = html.unescape(re.sub(r"<[^>]*>", " ", found[1])) if found else ""
    return " ".join(text.split())[:200]


def _reason(error: Exception) -> str:
    """One line about ``error``, without the request's own text."""
    if isinstance(error, exceptions.HttpError):
        said = _explained(error.details) if 400 <= error.http_status < 500 else ""
        if said:
            return f"{error.http_status} {said}"
        return f"{error.http_status} {error.message or error.details or ''}".strip()
    if isinstance(error, exceptions.EndpointNotFound | exceptions.EmptyCatalog):
        return "the catalog has no address of it"
    if isinstance(error, requests.Timeout | exceptions.ConnectTimeout):
        return "timeout"
    return str(error).splitlines()[0][:200] if str(error) else type(error).__name__
