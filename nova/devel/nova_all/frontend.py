"""Dispatcher of all APIs on one port, by path."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

START_S = 30.0  # timeout of a request to an application that starts


class StartingApplication:
    """WSGI application that starts after its socket listens: requests wait until it serves."""

    def __init__(self) -> None:
        self._serves = threading.Event()
        self._application: WSGIApplication = still_starting

    def serve(self, application: WSGIApplication) -> None:
        """Serve the waiting requests, and all others from now on, with ``application``."""
        self._application = application
        self._serves.set()

    def end_start(self) -> None:
        """End the wait of requests, also if the application could not start: they get a 503 response then."""
        self._serves.set()

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        self._serves.wait(START_S)
        return self._application(environ, start_response)


def still_starting(_environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
    """Return a 503 response, which asks the client to repeat the request."""
    start_response("503 Service Unavailable", [("Content-Type", "text/plain"), ("Retry-After", "1")])
    return [b"The cloud is still starting.\n"]


class ApiFrontend:
    """WSGI application that dispatches requests. ``below``: by the first part of the path; ``usual`` serves all other
    paths."""

    def __init__(self, usual: WSGIApplication = still_starting) -> None:
        self.usual = usual
        self.below: dict[str, WSGIApplication] = {}

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        first, _, rest = environ.get("PATH_INFO", "").removeprefix("/").partition("/")
        application = self.below.get(first)
        if application is not None:
            environ["SCRIPT_NAME"] = f"{environ.get('SCRIPT_NAME', '')}/{first}"
            environ["PATH_INFO"] = f"/{rest}"
            return application(environ, start_response)
        return self.usual(environ, start_response)
