"""Dispatcher of all APIs on one port, by path."""

from __future__ import annotations

from collections.abc import Iterable
from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment


class ApiFrontend:
    """WSGI application that dispatches requests. ``below``: by the first part of the path; ``usual`` serves all other
    paths."""

    def __init__(self, usual: WSGIApplication | None = None) -> None:
        self.usual = usual
        self.below: dict[str, WSGIApplication] = {}

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        first, _, rest = environ.get("PATH_INFO", "").removeprefix("/").partition("/")
        application = self.below.get(first)
        if application is not None:
            environ["SCRIPT_NAME"] = f"{environ.get('SCRIPT_NAME', '')}/{first}"
            environ["PATH_INFO"] = f"/{rest}"
            return application(environ, start_response)
        if self.usual is None:
            start_response("503 Service Unavailable", [("Content-Type", "text/plain"), ("Retry-After", "1")])
            return [b"The cloud is still starting.\n"]
        return self.usual(environ, start_response)
