"""A WSGI application that each process creates from nova.conf at its first request.

Servers import the application once and fork their workers after that, and workers must not share connections. So the
import reads and validates the configuration, and a process connects at its first request. No library is monkey-patched:
each request has a native thread of the server.
"""

from __future__ import annotations

import argparse
import atexit
import contextlib
import functools
import logging
import os
import sys
import threading
from collections.abc import Callable, Iterable, Mapping
from wsgiref.types import StartResponse, WSGIEnvironment

from nova import configuration, errors, failures, http_server
from nova.client_bounds import bounds
from nova.cmd import common
from nova.cmd.api import ALL, Api, check_own_filters, check_rules
from nova.conf._options import Options, oslo_conf

LOG = logging.getLogger(__name__)

FOLDER, FILES = "OS_NOVA_CONFIG_DIR", "OS_NOVA_CONFIG_FILES"
DEFAULT_FILES = "nova.conf"
AWAY = b'{"serviceUnavailable": {"code": 503, "message": "The API cannot start here; its log says why."}}'

Application = Callable[..., Iterable[bytes]]
_loading = threading.Lock()


class PerProcess:
    """The application ``name`` of ``enabled_apis``, created with ``make()`` at a process's first request."""

    def __init__(self, name: str, make: Callable[[], Api]) -> None:
        self.name, self._make = name, make
        self._lock = threading.Lock()
        self._pid, self._application = 0, None  # type: int, Application | None

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        if self._pid != os.getpid() and (error := failures.failure_of(self._begin)):  # the next request tries again
            LOG.error("the application %s cannot start: %s", self.name, getattr(error, "message", error),
                      exc_info=None if isinstance(error, errors.NovaError) else error)
            return _refuse(environ, start_response)
        assert self._application is not None
        return self._application(environ, start_response)

    def _begin(self) -> None:
        with self._lock:
            if self._pid == os.getpid():
                return
            api = self._make()
            api.introduce()
            atexit.register(_end, api, os.getpid())
            self._application = api.applications[self.name]
            self._pid = os.getpid()
            LOG.info("%s is ready in this process", self.name)


def _end(api: Api, pid: int) -> None:
    """Close this process's connections to the broker, but not those of the parent process."""
    if pid == os.getpid():
        with contextlib.suppress(Exception):  # the process ends: an error of the broker's library changes nothing
            api.close()


def made(name: str, binary: str) -> Application:
    """Return the application, after reading and validating its configuration.

    If that is invalid, the reason is in the server's log, and each request gets a 503 response: the server may run
    other applications, and an import must not end its process.
    """
    with contextlib.suppress(SystemExit):  # configuration.fail has logged the reason
        return _made(name, binary)
    return _refuse


def _made(name: str, binary: str) -> PerProcess:
    _need_threads()
    with _loading:  # servers may import two applications concurrently; logs are set up once
        options = _options(binary)
    try:
        check_rules(options, (name,))
        check_own_filters(options, (name,))
    except errors.config.Wrong as error:
        configuration.fail(configuration.sentence(oslo_conf(options), error))
    common.preload((*common.BUS, *ALL[name].modules))
    return PerProcess(name, lambda: Api(options, {name: None}))


def _refuse(_environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
    start_response("503 Service Unavailable", [("Content-Type", "application/json"),
                                               ("Content-Length", str(len(AWAY)))])
    return [AWAY]


@functools.cache
def _options(binary: str) -> Options:
    words = [*arguments(os.environ), *_server_words()]
    options = configuration.load(binary, configuration.beside(words, binary))
    common.open_log(options, binary)
    return options


def arguments(environ: Mapping[str, str]) -> list[str]:
    """Return the configuration files as command line arguments; empty without the variables, which selects the
    defaults.

    OS_NOVA_CONFIG_FILES is a list separated by semicolons, in OS_NOVA_CONFIG_DIR (/etc/nova). An ``.ini`` file in it is
    a paste pipeline of older releases, and is ignored.
    """
    if FILES not in environ:
        return []
    folder = environ.get(FOLDER) or "/etc/nova"
    names = [name.strip() for name in (environ.get(FILES) or DEFAULT_FILES).split(";")]
    kept = [name for name in names if name and not name.endswith(".ini")] or [DEFAULT_FILES]
    return [word for name in kept for word in ("--config-file", os.path.join(folder, name))]


def _server_words() -> list[str]:
    """Return uWSGI's ``pyargv``, which Debian's packages use; other servers have their own arguments."""
    return sys.argv[1:] if _uwsgi_options() is not None else []


def _uwsgi_options() -> set[str] | None:
    """Return the names of the options in uWSGI's configuration; None under another server."""
    try:
        import uwsgi  # exists only in that server's processes
    except ImportError:
        return None
    return {name.decode() if isinstance(name, bytes) else name for name in uwsgi.opt}


def _need_threads() -> None:
    """Check that uWSGI permits threads: nova needs its own threads to read replies from the broker."""
    said = _uwsgi_options()
    if said is None:
        return
    if said.isdisjoint({"enable-threads", "threads", "gevent"}):
        configuration.fail("uWSGI runs this application without threads: set enable-threads = true in its options")


def run(name: str, binary: str, argv: list[str] | None = None) -> int:
    """Run the script as a program: serve until interrupted, in one process, for tests."""
    options = _options(binary)
    address, port = ALL[name].address(options)
    parser = argparse.ArgumentParser(description=f"Serve {name} from this process, for tests. In production, pass "
                                                 "this file to uWSGI, or the module to gunicorn.")
    parser.add_argument("--host", default=address, help="address (default: the configured one)")
    parser.add_argument("--port", "-p", type=int, default=port, help="port (default: the configured one)")
    asked = parser.parse_args(argv)
    try:
        sock = http_server.bind(asked.host, asked.port)
    except OSError as error:
        LOG.error("%s", errors.service.CannotStart(reason=f"{asked.host}:{asked.port}: {error.strerror}").message)
        return 1
    server = http_server.Server(sock, made(name, binary), bounds(name, options))
    with contextlib.suppress(KeyboardInterrupt):
        server.run()
    server.stop()
    return 0
