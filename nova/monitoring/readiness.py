"""Readiness of a daemon as metrics: the result of ``/health/ready``, for monitoring that reads only ``/metrics``."""

from __future__ import annotations

import concurrent.futures
import threading
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from prometheus_client.core import GaugeMetricFamily, Metric

from nova import concurrency
from nova.monitoring.health import Health

WAIT_S = 3.0  # Prometheus waits 10 s for the whole page, and reports a slower daemon as down


class Readiness(NamedTuple):
    """The last known readiness. ``checks``: by name, True for success."""

    ready: bool = False
    checks: Mapping[str, bool] = {}


class ReadyFigures:
    """A collector for prometheus_client. If the checks take longer than a reader may wait, they continue in the
    background: that reader gets the previous results, and the next one the new results."""

    def __init__(self, health: Health, wait_s: float = WAIT_S) -> None:
        self._health, self._wait_s = health, wait_s
        self._lock, self._pool = threading.Lock(), concurrency.WorkerPool(1, "readiness")
        self._looking: concurrent.futures.Future[object] | None = None
        self._known = Readiness()

    def collect(self) -> Iterator[Metric]:
        """Yield ``nova_ready``, and ``nova_ready_check`` for each check."""
        known = self._looked()
        binary = self._health.binary
        ready = GaugeMetricFamily("nova_ready", "1 if the daemon can do its work.", labels=("binary",))
        ready.add_metric((binary,), float(known.ready))
        checks = GaugeMetricFamily("nova_ready_check", "1 if the dependency responds, by check.",
                                   labels=("binary", "check"))
        for name, succeeded in known.checks.items():
            checks.add_metric((binary, name), float(succeeded))
        yield from (ready, checks)

    def _looked(self) -> Readiness:
        with self._lock:
            looking = self._looking or self._pool.submit(self._look)
            done, _ = concurrent.futures.wait([looking], self._wait_s)
            self._looking = None if done else looking
            return self._known

    def _look(self) -> None:
        ready, _ = self._health.ready()
        self._known = Readiness(ready, self._health.checks())
