"""Filters and applications for api-paste.ini, like those of operators."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

SEEN = "test.seen"  # in the environ: names of the filters that saw the request, in order

WSGI = Callable[..., Iterable[bytes]]


def noting(_global: dict[str, str], name: str, refuses: str = "") -> Callable[[WSGI], WSGI]:
    """Return a filter that records ``name``, with the user's project if it is known; ``refuses``: a status."""
    def around(application: WSGI) -> WSGI:
        def call(environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
            who = environ.get("nova.context")
            environ.setdefault(SEEN, []).append(f"{name}:{who.project_id}" if who else name)
            if refuses:
                start_response(refuses, [("Content-Type", "text/plain"), ("Content-Length", "5")])
                return [b"sorry"]
            return application(environ, start_response)
        return call
    return around


def failing(_global: dict[str, str], **_local: str) -> Callable[[WSGI], WSGI]:
    """Fail, as a factory that cannot create its filter."""
    raise ValueError("the audit map\nis not readable")


def greeting(_global: dict[str, str], **_local: str) -> WSGI:
    """Return an application that answers with a text."""
    def call(environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        start_response("200 OK", [("Content-Type", "text/plain"), ("Content-Length", "5")])
        return [b"hello"]
    return call
