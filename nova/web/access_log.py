"""The access log: one line per request, written after its response."""
from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable
from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

from nova import metrics, tracing
from nova.web import paths
from nova.web.paths import ExcInfo


class AccessLog:
    """A log of client, method, path, status, length, version and seconds. Tokens are in headers, so never in it.

    ``api``: its label in metrics. ``logger``: the name of the logger for the lines.
    """

    def __init__(self, application: WSGIApplication, api: str, logger: str) -> None:
        self.application, self.api = application, api
        self._log = logging.getLogger(logger)

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        began = time.monotonic()
        answered = {"status": "-", "length": "-"}

        def start(status: str, headers: list[tuple[str, str]], exc_info: ExcInfo | None = None
                  ) -> Callable[[bytes], object]:
            answered["status"] = status.split(" ", 1)[0]
            answered["length"] = next((value for name, value in headers if name.lower() == "content-length"), "-")
            return start_response(status, headers, exc_info)

        try:
            with tracing.span(environ["REQUEST_METHOD"], tracing.SERVER) as span:
                content = self.application(environ, start)
                span |= {"name": str(environ.get(paths.ROUTE_KEY, environ["REQUEST_METHOD"])),
                         "http.response.status_code": answered["status"]}
                return content
        finally:
            seconds = time.monotonic() - began
            route = environ.get(paths.ROUTE_KEY, "none")
            metrics.API_REQUESTS.labels(self.api, route, answered["status"]).observe(seconds)
            self._log.info('%s "%s %s" status: %s len: %s microversion: %s time: %.6f', environ.get("REMOTE_ADDR", "-"),
                     environ["REQUEST_METHOD"], paths.logged(environ), answered["status"], answered["length"],
                     environ.get(paths.VERSION_KEY, "-"), seconds, extra={"duration_ms": int(1000 * seconds)})
