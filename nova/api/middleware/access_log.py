"""One line a request, after its answer was made."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable
from typing import Any

from nova.api.dispatch import VERSION_KEY

LOG = logging.getLogger("nova.api.access")


class AccessLog:
    """Client, method, path, status, length, version and seconds. Tokens are in headers, so never in it."""

    def __init__(self, application: Callable[..., Any]) -> None:
        self.application = application

    def __call__(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        began = time.monotonic()
        answered = {"status": "-", "length": "-"}

        def start(status: str, headers: list[tuple[str, str]], exc_info: Any = None) -> Any:
            answered["status"] = status.split(" ", 1)[0]
            answered["length"] = next((value for name, value in headers if name.lower() == "content-length"), "-")
            return start_response(status, headers, exc_info)

        try:
            return self.application(environ, start)
        finally:
            LOG.info('%s "%s %s" status: %s len: %s microversion: %s time: %.6f', environ.get("REMOTE_ADDR", "-"),
                     environ["REQUEST_METHOD"], path_of(environ), answered["status"], answered["length"],
                     environ.get(VERSION_KEY, "-"), time.monotonic() - began)


def path_of(environ: dict[str, Any]) -> str:
    """The path as it was asked for, on one line whatever a client put into it."""
    path = environ.get("nova.path") or environ.get("SCRIPT_NAME", "") + environ.get("PATH_INFO", "")
    query = environ.get("QUERY_STRING")
    text = f"{path}?{query}" if query else path
    return text.encode("latin-1", "replace").decode("utf-8", "replace").encode("unicode_escape").decode("ascii")
