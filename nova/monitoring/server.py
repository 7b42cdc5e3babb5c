"""The HTTP server of a daemon's health and metrics."""

from __future__ import annotations

import json
import logging
import socket
from collections.abc import Callable, Iterable
from http import HTTPStatus
from typing import NamedTuple
from wsgiref.types import StartResponse, WSGIEnvironment

from nova import failures, http_server
from nova.client_bounds import MONITORING
from nova.conf._options import Options
from nova.conf.monitoring import PORTS
from nova.monitoring.exposition import CONTENT_TYPE_LATEST, ProcessFigures, exposed
from nova.monitoring.health import Collector, Health, HealthChecks
from nova.monitoring.readiness import ReadyFigures

LOG = logging.getLogger(__name__)

JSON = "application/json"


class MonitoringAnswer(NamedTuple):
    status: HTTPStatus
    content: bytes
    kind: str = JSON


def bind(options: Options, binary: str) -> socket.socket | None:
    """Return the listening socket, for use before workers fork; None if monitoring is disabled. A failure is only
    logged as a warning: a cloud must run without monitoring, too."""
    group = options.monitoring
    if not group.enabled:
        return None
    port = group.port or PORTS[binary]
    try:
        return http_server.bind(group.listen, port)
    except OSError as error:
        LOG.warning("no health and metrics: cannot listen on %s:%d ([monitoring]listen, port): %s. "
                    "If two daemons of a kind run on one machine, set [monitoring]port in each daemon's own file",
                    group.listen, port, error.strerror)
        return None


class Monitoring:
    """WSGI application for the metrics and the health of one daemon."""

    def __init__(self, health: Health) -> None:
        self._health, self._ready = health, ReadyFigures(health)
        self._pages: dict[str, Callable[[], MonitoringAnswer]] = {
            "/metrics": self._metrics, "/health/live": lambda: _answer_of(*health.live()),
            "/health/ready": lambda: _answer_of(*health.ready())}

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        answer = self._answer(environ)
        start_response(f"{answer.status} {answer.status.phrase}", [
            ("Content-Type", answer.kind), ("Content-Length", str(len(answer.content))), ("Cache-Control", "no-store")])
        return [answer.content]

    def _answer(self, environ: WSGIEnvironment) -> MonitoringAnswer:
        page = self._pages.get(environ["PATH_INFO"])
        if page is None:
            return _said(HTTPStatus.NOT_FOUND, {"pages": sorted(self._pages)})
        if environ["REQUEST_METHOD"] not in ("GET", "HEAD"):
            return _said(HTTPStatus.METHOD_NOT_ALLOWED, {"error": "only GET and HEAD are allowed"})
        with failures.keep_running(LOG, "cannot serve %s", environ["PATH_INFO"]):
            return page()
        return _said(HTTPStatus.INTERNAL_SERVER_ERROR, {"error": "see the daemon's log"})

    def _metrics(self) -> MonitoringAnswer:
        health_checks = self._health.health_checks or HealthChecks()
        figures: tuple[Collector, ...] = (ProcessFigures(self._health.workers), self._ready, *health_checks.collectors)
        return MonitoringAnswer(HTTPStatus.OK, exposed(figures), CONTENT_TYPE_LATEST)


def serve(sock: socket.socket, health: Health) -> http_server.Server:
    """Start to serve on a socket that the daemon's other workers share, in background threads."""
    server = http_server.Server(sock, Monitoring(health), MONITORING)
    server.start()
    return server


def _answer_of(well: bool, detail: dict[str, object]) -> MonitoringAnswer:
    status = HTTPStatus.OK if well else HTTPStatus.SERVICE_UNAVAILABLE
    return _said(status, {"status": "ok" if well else "failing", **detail})


def _said(status: HTTPStatus, detail: dict[str, object]) -> MonitoringAnswer:
    return MonitoringAnswer(status, json.dumps(detail).encode() + b"\n")
