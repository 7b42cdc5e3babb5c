"""A WSGI application that each process makes for itself at its first request, from nova.conf.

Servers import the application once and fork their workers after that; connections must not be shared by them. So the
import reads and checks the configuration, and a process connects when it is first asked something. Nothing is patched:
a request has a native thread, the server's.
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
from collections.abc import Callable, Iterable
from wsgiref.types import StartResponse, WSGIEnvironment

from nova import configuration, errors, http_server
from nova.client_bounds import bounds
from nova.cmd import common
from nova.cmd.api import ALL, Api, check_own_filters, check_rules
from nova.conf.base import Options
from nova.model.base import Json

LOG = logging.getLogger(__name__)

FOLDER, FILES = "OS_NOVA_CONFIG_DIR", "OS_NOVA_CONFIG_FILES"
DEFAULT_FILES = "nova.conf"
AWAY = b'{"serviceUnavailable": {"code": 503, "message": "The API cannot start here; its log says why."}}'

Application = Callable[..., Iterable[bytes]]
_loading = threading.Lock()


class PerProcess:
    """The application ``name`` of ``enabled_apis``, made by ``make()`` at a process's first request."""

    def __init__(self, name: str, make: Callable[[], Api]) -> None:
        self.name, self._make = name, make
        self._lock = threading.Lock()
        self._pid, self._application = 0, None  # type: int, Application | None

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        if self._pid != os.getpid():
            try:
                self._begin()
            except Exception as error:  # the next request tries again
                LOG.error("the application %s cannot start: %s", self.name, getattr(error, "message", error),
                          exc_info=not isinstance(error, errors.NovaError))
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
    """Give the broker its connections back; not those of a parent that forked us."""
    if pid == os.getpid():
        with contextlib.suppress(Exception):
            api.close()


def made(name: str, binary: str) -> Application:
    """The application, its configuration read and checked.

    When that is wrong, the sentence is in the server's log, and each request is answered with 503: the server serves
    other applications, too, and an import must not end its process.
    """
    try:
        return _made(name, binary)
    except SystemExit:  # configuration.fail has said why
        return _refuse


def _made(name: str, binary: str) -> PerProcess:
    _need_threads()
    with _loading:  # servers may import two applications at once; logs are set up once
        options = _options(binary)
    try:
        check_rules(options, (name,))
        check_own_filters(options, (name,))
    except errors.config.Wrong as error:
        configuration.fail(configuration.sentence(options, error))
    common.preload(("nova.rpc.transport", ALL[name].module))
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


def arguments(environ: Json) -> list[str]:
    """The configuration's files as words of a command line. Without the variables: none, which means the defaults.

    OS_NOVA_CONFIG_FILES is a list parted by semicolons, in OS_NOVA_CONFIG_DIR (/etc/nova). An ``.ini`` file in it
    is a paste pipeline of older releases; ours is no file.
    """
    if FILES not in environ:
        return []
    folder = environ.get(FOLDER) or "/etc/nova"
    names = [name.strip() for name in (environ.get(FILES) or DEFAULT_FILES).split(";")]
    kept = [name for name in names if name and not name.endswith(".ini")] or [DEFAULT_FILES]
    return [word for name in kept for word in ("--config-file", os.path.join(folder, name))]


def _server_words() -> list[str]:
    """What uWSGI's ``pyargv`` says, which Debian's packages use; other servers' arguments are their own."""
    return sys.argv[1:] if _uwsgi_options() is not None else []


def _uwsgi_options() -> set[str] | None:
    """The names of what is set in uWSGI's configuration; None under another server."""
    try:
        import uwsgi  # a module that only that server's processes have
    except ImportError:
        return None
    return {name.decode() if isinstance(name, bytes) else name for name in uwsgi.opt}


def _need_threads() -> None:
    """Under uWSGI: threads of ours must run, or no answer of the broker would ever be read."""
    said = _uwsgi_options()
    if said is None:
        return
    if said.isdisjoint({"enable-threads", "threads", "gevent"}):
        configuration.fail("uWSGI runs us without threads: say enable-threads = true in its configuration")


def run(name: str, binary: str, argv: list[str] | None = None) -> int:
    """The script run as a program: serve until interrupted, one process, for trials."""
    options = _options(binary)
    address, port = ALL[name].address(options)
    parser = argparse.ArgumentParser(description=f"Serve {name} from this process, for trials. In production give "
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
