"""Implementation of the four console proxies: configuration, certificate, pages, and one process that serves consoles.

Exit codes: those of all services, and 255 (as in earlier releases) if the certificate for ``ssl_only`` is missing, or
an option names a directory of pages that does not exist.
"""

from __future__ import annotations

import logging
import os
import resource
import socket
import sys
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast

from nova import concurrency, configuration, errors, failures
from nova.cmd import common
from nova.cmd.reporting import Reporting
from nova.conf._options import Options, oslo_conf
from nova.console import kinds
from nova.monitoring.health import HealthChecks

if TYPE_CHECKING:
    import ssl

    from nova.console.access import AccessSettings
    from nova.console.app import App
    from nova.console.sessions import SessionTotal
    from nova.legacy.xvp import Application

LOG = logging.getLogger(__name__)

REFUSED = 255
DOORS_S = 5.0  # time to complete running requests when the proxy stops
CHECK_S = 20  # deadline of a token check, during which the user sees an empty page
FILES = 8  # open files that a session may need
SPARE_FILES = 2000

EPILOG = """Relevant options in files: [{section}]{host} and {port} (the listen address), [DEFAULT]transport_url
(the broker), [console]allowed_origins, reachable_networks and max_sessions. After SIGTERM open consoles continue for
[DEFAULT]graceful_shutdown_timeout seconds; then users are asked to reconnect."""


class BadSetting(Exception):
    """An unusable configuration of a proxy; the text has the reason and the cure."""


def main(binary: str) -> int:
    """Run a proxy, from the command line to its exit code."""
    from nova import service
    from nova.conf import proxies
    from nova.console.kinds import KINDS
    from nova.console.sessions import SessionTotal

    kind = KINDS[binary]
    options = configuration.read(binary, configuration.beside(sys.argv[1:], binary),
                          [*proxies.CLI_OPTS, *proxies.CLI_ONLY], kind.about, EPILOG.format(**kind._asdict()))
    common.begin(options, binary)
    if oslo_conf(options).daemon:
        LOG.warning("--daemon has no effect; %s stays in the foreground: use systemd for that", binary)
    served = [kind, *(KINDS[f"nova-{name}"] for name in dict.fromkeys(options.console.with_novncproxy)
                      if kind is kinds.NOVNC)]
    try:
        parts = [ProxyParts(options, one) for one in served]
    except BadSetting as error:
        sys.stderr.write(f"{binary}: {error}\n")
        return REFUSED
    with common.preparing(options, binary):
        socks = [bind(options, one) for one in served]
    more_files(options.console.max_sessions * sum(one.channels for one in served))
    common.preload((*common.BUS, "nova.console.app"))
    total = SessionTotal()
    return service.run(options, binary, lambda _index: ProxyProcess(
        [Proxy(options, part, sock, total) for part, sock in zip(parts, socks, strict=True)]))


class ProxyParts:
    """Certificate and pages of a proxy, read and checked before it listens. Raises BadSetting."""

    def __init__(self, options: Options, kind: kinds.ConsoleKind) -> None:
        from nova.console import installed, kinds

        self.kind, self.raw = kind, kind is kinds.XVPVNC  # raw: for a viewer that is not a browser, without pages
        self.tls = tls(options, must=options.ssl_only and not self.raw)
        self.tls_only = options.ssl_only and not self.raw
        if kind.web and options.web and not os.path.isdir(options.web):  # a typo, not a missing package
            raise BadSetting(f"missing directory {options.web} (--web or [DEFAULT]web): correct it, or omit it "
                             f"to use {kind.web}")
        self.pages = installed.ProxyPages() if self.raw else installed.pages(kind, options.web,
                                                                             options.console.xterm_path)
        if self.pages.lacks:
            LOG.warning("%s starts without some of its pages: %s", kind.binary, self.pages.lacks)
        record(options.record)


def record(prefix: str | None) -> None:
    """Check that sessions can be recorded in the directory of ``prefix``; None: no recording. Raises BadSetting."""
    folder = os.path.dirname(prefix or "") or "."
    if prefix and not os.access(folder, os.W_OK | os.X_OK):
        raise BadSetting(f"sessions cannot be recorded in {folder} ([DEFAULT]record): it is missing or not writable")


def tls(options: Options, must: bool) -> ssl.SSLContext | None:
    """Return the TLS context for browsers; None without a certificate. Raises BadSetting if a required certificate is
    missing, or the present one is unusable."""
    import ssl

    from nova.console.vencrypt import check_readable

    if not os.path.exists(options.cert):
        if must:
            raise BadSetting(f"ssl_only requires TLS, but there is no certificate {options.cert}: set one with --cert "
                             "or [DEFAULT]cert")
        return None
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    minimum = {"tlsv1_1": ssl.TLSVersion.TLSv1_1, "tlsv1_2": ssl.TLSVersion.TLSv1_2,
               "tlsv1_3": ssl.TLSVersion.TLSv1_3}.get(options.console.ssl_minimum_version)
    with failures.replaced((OSError, ssl.SSLError, BadSetting), lambda error: BadSetting(
            f"[DEFAULT]cert {options.cert}, key {options.key or '(in the same file)'} or [console]ssl_ciphers cannot "
            f"be used: {error}")):
        check_readable(options.cert, options.key)
        made.load_cert_chain(options.cert, options.key or None, password=_no_password)
        if options.console.ssl_ciphers:
            made.set_ciphers(options.console.ssl_ciphers)
    if minimum is not None:
        made.minimum_version = minimum
    return made


def _no_password() -> str:
    raise BadSetting("the key is encrypted, and a service cannot ask for its password")


def bind(options: Options, kind: kinds.ConsoleKind) -> socket.socket:
    """Return the listening socket. Raises service.CannotStart with address and option."""
    from nova import http_server

    group = getattr(options, kind.section)
    host, port = getattr(group, kind.host), getattr(group, kind.port)
    with failures.replaced(OSError, lambda error: errors.service.CannotStart(
            reason=f"{host}:{port} ([{kind.section}]{kind.host}, {kind.port}) cannot be bound: {error.strerror}")):
        if options.source_is_ipv6:
            name = None if host == "0.0.0.0" else host
            host = str(socket.getaddrinfo(name, port, socket.AF_INET6, flags=socket.AI_PASSIVE)[0][4][0])
        return http_server.bind(host, port)


def more_files(sessions: int) -> None:
    """Raise the limit of open files for this number of consoles, and log a warning if the hard limit is too low."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = sessions * FILES + SPARE_FILES
    if soft != resource.RLIM_INFINITY and soft < wanted:
        most = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
        if most < wanted:
            LOG.warning("%d console connections ([console]max_sessions) may need %d open files, but the limit of this "
                        "process is %d: raise it (LimitNOFILE)", sessions, wanted, most)


def settings(options: Options, kind: kinds.ConsoleKind) -> AccessSettings:
    """Return the settings of the console access check. Raises errors.Invalid for a wrong option."""
    from nova.console import access, rfb, target

    group = options.console
    return access.AccessSettings(
        reach=target.Reach.from_conf(options), allowed_origins=tuple(group.allowed_origins),
        security=rfb.Security.from_conf(options) if kind.secures else rfb.Security(),
        idle_s=group.session_idle_timeout, total_s=group.session_timeout,
        until_expiry=options.consoleauth.enforce_session_timeout, record=options.record or "")


class ProxyProcess:
    """The single process of a console proxy, or of nova-novncproxy with others. Open consoles depend only on this
    process and their hosts, not on the broker."""

    def __init__(self, proxies: Sequence[Proxy]) -> None:
        self.proxies = proxies

    def start(self) -> None:
        for proxy in self.proxies:
            proxy.start()

    def health_checks(self) -> HealthChecks:
        """Return the first proxy's check: all call the same services over the same broker."""
        first = self.proxies[0].health_checks()
        return first._replace(why_not_receiving=self._why_not_receiving)

    def _why_not_receiving(self) -> str:
        return next(filter(None, (proxy.bus.why_not_receiving() for proxy in self.proxies)), "")

    def stop(self, seconds: float) -> None:
        """Stop listening. Open consoles of all proxies continue for the rest of ``seconds``."""
        ends = [concurrency.spawn(proxy.stop, seconds) for proxy in self.proxies]
        for end in ends:
            end.join()


class Proxy:
    """A proxy for one kind of console."""

    def __init__(self, options: Options, parts: ProxyParts, sock: socket.socket, total: SessionTotal | None = None
                 ) -> None:
        from nova.console import access, sessions
        from nova.legacy import xvp
        from nova.rpc.buses import control_bus
        from nova.rpc.contracts.conductor_proxy import ConductorProxyRPC
        from nova.rpc.contracts.console_check import ConsoleCheckRPC
        from nova.rpc.narrow import NarrowClient

        kind = parts.kind
        self.options, self.parts, self.sock = options, parts, sock
        self.bus = control_bus(options, options.host, timeout_s=CHECK_S)
        self.sessions = sessions.Sessions(sessions.SessionLimits.of(options.console, kind.channels), kind.exclusive,
                                          total=total)
        checks = cast(ConsoleCheckRPC, NarrowClient(self.bus, ConsoleCheckRPC))
        self.access = access.ConsoleAccess(kind, checks, self.sessions, settings(options, kind),
                                           xvp.STEPS if parts.raw else None)
        self.reporting = Reporting(options, kind.binary, kind.binary.removeprefix("nova-"), self.bus,
                                   cast(ConductorProxyRPC, NarrowClient(self.bus, ConductorProxyRPC)))
        self.server: Any = None

    def application(self) -> App | Application:
        """Return the WSGI application: pages and WebSockets for browsers, or xvpvnc's for its viewer."""
        from nova.console import app
        from nova.legacy import xvp

        return xvp.Application(self.access) if self.parts.raw else app.App(self.access, self.parts.pages)

    def start(self) -> None:
        from nova import http_server
        from nova.client_bounds import bounds

        self.server = http_server.Server(self.sock, self.application(), bounds("console", self.options),
                                         self.parts.tls, self.parts.tls_only)
        self.server.start()
        self.reporting.start()
        where = self.sock.getsockname()
        LOG.info("%s listens on %s port %d, %s", self.parts.kind.binary, where[0], where[1],
                 "TLS only" if self.parts.tls_only else "TLS and plain" if self.parts.tls else "without TLS")

    def health_checks(self) -> HealthChecks:
        """Return a check that nova-consoleauth answers, which checks the tokens."""
        from nova.rpc.contracts.console_check import ConsoleCheckRPC
        from nova.rpc.narrow import spoken

        return HealthChecks({"bus": lambda: self.bus.reach(spoken(self.bus.peers, ConsoleCheckRPC))},
                            self.bus.why_not_receiving)

    def stop(self, seconds: float) -> None:
        """Stop listening, so that another process can listen immediately. Open consoles continue for the rest of
        ``seconds``; then users are asked to reconnect."""
        began = time.monotonic()
        self.reporting.stop()
        self.sessions.draining = True
        self.server.stop(min(DOORS_S, seconds))
        self.sock.close()  # the next process may listen while this one's consoles continue
        self.sessions.drain(max(0.0, seconds - (time.monotonic() - began)))
