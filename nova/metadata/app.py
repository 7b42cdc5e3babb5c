"""The WSGI application: serves a path of ``nova.model.guest.guest_tree`` to the calling guest.

It runs under nova's own server and under any other. A request needs at most one call to the conductor, usually none:
the data of a guest are cached for a few seconds.
"""

from __future__ import annotations

import datetime
import logging
import time
from collections.abc import Callable, Iterable
from http import HTTPStatus
from typing import NamedTuple, Protocol
from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

from nova import context, errors, failures, metrics
from nova.conf._options import Options
from nova.metadata.cache import Busy, Cache, ConcurrencyLimiter
from nova.metadata.callers import caller_of
from nova.metadata.options import MetadataOptions
from nova.metadata.options import from_conf as options_from_conf
from nova.model.base import HostName
from nova.model.guest import guest_tree
from nova.model.guest.guest_tree import VendorData
from nova.model.guest.guests import GuestFacts, GuestPassword, GuestQuery
from nova.model.guest.vendor_source import NoVendorData, VendorSource
from nova.web.api_paste import surroundings
from nova.web.dispatch import MountedApi
from nova.web.stacking import stacked

LOG = logging.getLogger(__name__)

API = "metadata"  # its name in api-paste.ini
KNOWN = ("GET", "HEAD", "POST")  # other methods share a label, so that a guest cannot create metrics
LONGEST_PASSWORD = 1020  # bytes, encrypted: four database columns of 255 in earlier releases
TEXT, JSON = "text/plain; charset=UTF-8", "application/json"


class FactsSource(Protocol):
    """The calls of the ConductorHostRPC client."""

    def guest_facts(self, host: HostName, query: GuestQuery) -> GuestFacts:
        """Return the data that a guest may have about itself. Raises NotFound if ``query`` matches no live server, and
        Unavailable."""
    def set_guest_password(self, host: HostName, password: GuestPassword) -> None:
        """Store the password that a guest posted. Raises Conflict if one is stored already."""


class Reply(NamedTuple):
    status: int
    body: bytes
    content_type: str = TEXT
    headers: tuple[tuple[str, str], ...] = ()


class GuestFiles(NamedTuple):
    """The files of one guest."""

    facts: GuestFacts
    files: dict[str, bytes]


class MetadataApp:
    """The metadata service. ``host``: the name of this host at the conductor."""

    def __init__(self, source: FactsSource, host: HostName, options: MetadataOptions,
                 vendor: VendorSource | None = None, today: Callable[[], datetime.date] | None = None) -> None:
        self._source, self._host, self._options = source, host, options
        self._vendor = vendor or NoVendorData()
        self._today = today or (lambda: datetime.datetime.now(datetime.UTC).date())
        self._caller = caller_of(options)
        self._turnstile = ConcurrencyLimiter(options.in_flight)
        self._by_server: Cache[GuestFiles] = Cache(options.cache_s)
        self._by_address: Cache[GuestFiles] = Cache(min(options.cache_s, options.address_cache_s))
        self._asked: Cache[bytes] = Cache(options.cache_s)  # vendor_data2.json, which needs calls to other services

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        began = time.monotonic()
        with context.entered(context.internal()):
            reply = self._safely(environ)
        metrics.API_REQUESTS.labels("metadata", environ["REQUEST_METHOD"] if environ["REQUEST_METHOD"] in KNOWN
                                    else "other", str(reply.status)).observe(time.monotonic() - began)
        headers = [("Content-Type", reply.content_type), ("Content-Length", str(len(reply.body))), *reply.headers]
        start_response(f"{reply.status} {HTTPStatus(reply.status).phrase}", headers)
        return [] if environ["REQUEST_METHOD"] == "HEAD" else [reply.body]

    def _safely(self, environ: WSGIEnvironment) -> Reply:
        try:
            with failures.keep_running(LOG, "cannot serve metadata to a guest", but=errors.NovaError):
                return self._reply(environ)
        except errors.Unavailable as error:
            LOG.warning("cannot serve metadata to a guest: %s", error)
            return _refusal(503, "The metadata are not available at the moment; try again.", ("Retry-After", "2"))
        except errors.NovaError as error:
            if error.status < 500 or isinstance(error, errors.NotSupported):
                return _refusal(error.status, str(error))
            LOG.error("cannot serve metadata to a guest: %s", error)
        return _refusal(500, "An unknown error has occurred. Please try your request again.")

    def _reply(self, environ: WSGIEnvironment) -> Reply:
        path = "/".join(part for part in environ.get("PATH_INFO", "").split("/") if part)
        if path == "ec2" or path.startswith("ec2/"):
            path = path[len("ec2/"):]
        if path in ("", "openstack"):  # the same for all guests: the caller need not be identified
            return self._plain(environ, guest_tree.listing({}, path, self._today()) or b"")
        query = self._caller(environ)
        try:
            with self._turnstile.through(query):
                return self._reply_to(query, path, environ)
        except Busy:
            return _refusal(429, "Too many concurrent requests; try again.", ("Retry-After", "1"),
                            ("Connection", "close"))  # so that a guest that ignores this must reconnect each time

    def _reply_to(self, query: GuestQuery, path: str, environ: WSGIEnvironment) -> Reply:
        """Serve a path. A password is never taken from the cache, because clients poll for its change."""
        known = self._cache_of(query).get(query, lambda: self._guest_files(query), fresh=_is_password(path))
        if _is_password(path) and path in known.files:
            return self._password(environ, query, known)
        if path.startswith("openstack/") and path.endswith("/vendor_data2.json") and path in known.files:
            return self._plain(environ, self._asked.get(known.facts.uuid, lambda: self._ask(known.facts)), JSON)
        if path in known.files:
            return self._plain(environ, known.files[path], JSON if path.endswith(".json") else TEXT)
        listed = guest_tree.listing(known.files, path, self._today())
        if listed is None:
            raise errors.NotFound()
        return self._plain(environ, listed)

    def _cache_of(self, query: GuestQuery) -> Cache[GuestFiles]:
        return self._by_server if query.server_uuid is not None else self._by_address

    def _guest_files(self, query: GuestQuery) -> GuestFiles:
        facts = self._source.guest_facts(self._host, query)
        if query.project_id not in (None, facts.project_id) or query.server_uuid not in (None, facts.uuid):
            raise errors.NotFound()  # the conductor has checked it already; secrets need more than one check
        files = guest_tree.tree(facts, self._options.tree, VendorData(static=self._vendor.static()))
        return GuestFiles(facts, files)

    def _ask(self, facts: GuestFacts) -> bytes:
        vendor = VendorData(static=self._vendor.static(), dynamic=self._vendor.dynamic(facts))
        return guest_tree.vendor_data2_file(vendor)

    def _plain(self, environ: WSGIEnvironment, body: bytes, content_type: str = TEXT) -> Reply:
        if environ["REQUEST_METHOD"] not in ("GET", "HEAD"):
            return _refusal(405, "The method is not allowed for this resource.", ("Allow", "GET, HEAD"))
        return Reply(200, body, content_type)

    def _password(self, environ: WSGIEnvironment, query: GuestQuery, known: GuestFiles) -> Reply:
        method = environ["REQUEST_METHOD"]
        if method in ("GET", "HEAD"):
            return Reply(200, known.facts.password.encode())
        if method != "POST":
            raise errors.Invalid("Only GET and POST are allowed here.")
        body = _body(environ, LONGEST_PASSWORD)
        if known.facts.password:
            raise errors.metadata.PasswordKept()
        try:
            self._source.set_guest_password(self._host, GuestPassword(server_uuid=known.facts.uuid, password=body))
        finally:
            self._cache_of(query).forget(query)
        return Reply(200, b"")


def _is_password(path: str) -> bool:
    parts = path.split("/")
    return parts[0] == "openstack" and parts[-1] == "password" and len(parts) == 3


def _body(environ: WSGIEnvironment, longest: int) -> str:
    """Return the request's body as text. Raises Invalid if it is too long, or not ASCII (encrypted data are base64)."""
    with failures.replaced(ValueError, lambda _: errors.Invalid("The Content-Length is not a number.")):
        length = int(environ.get("CONTENT_LENGTH") or 0)
    if not 0 <= length <= longest:
        raise errors.Invalid(f"Request is too large: at most {longest} bytes.")
    body = environ["wsgi.input"].read(length)
    with failures.replaced(UnicodeDecodeError,
            lambda _: errors.Invalid("The password must be encrypted, in ASCII text.")):
        return body.decode("ascii")


def _refusal(status: int, text: str, *headers: tuple[str, str]) -> Reply:
    return Reply(status, f"{status} {HTTPStatus(status).phrase}\n\n{text}\n".encode(), TEXT, headers)


def build(source: FactsSource, host: HostName, options: MetadataOptions, vendor: VendorSource | None = None,
          ) -> MetadataApp:
    """Return the application of nova-api-metadata."""
    return MetadataApp(source, host, options, vendor)


def from_conf(source: FactsSource, conf: Options, vendor: VendorSource | None = None) -> WSGIApplication:
    """Return the application as configured in nova.conf (for ``nova.cmd``), with the operator's own filters. Raises
    metadata.NoSecret, with the message for the end of the process."""
    own = surroundings(conf, API)
    application = build(source, conf.host, options_from_conf(conf), vendor)
    return MountedApi(stacked(application, own.of("").outside), own.beside)
