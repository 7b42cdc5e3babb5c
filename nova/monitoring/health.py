"""Liveness (the main loops run, RPC arrives) and readiness (all dependencies respond) of a daemon."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, Protocol

from nova import context, errors, failures
from nova.monitoring.workers import Worker, Workers, WorkerState

CACHED_S = 5.0  # results are shared for so long, so that frequent requests cannot load a broker or a database
TIMEOUT_S = 8.0


class Collector(Protocol):
    """A source of metrics for prometheus_client's registry, read on each scrape."""

    def collect(self) -> Any:
        """Return the current families of metrics."""


class HealthChecks(NamedTuple):
    """Health checks of a worker. ``checks``: by name, functions that raise while the daemon cannot work.
    ``why_not_receiving``: why the process must be replaced; empty while it receives RPC. ``collectors``: metrics that
    are read on demand, not counted."""

    checks: Mapping[str, Callable[[], object]] = {}
    why_not_receiving: Callable[[], str] = lambda: ""
    collectors: tuple[Collector, ...] = ()


class CheckResult(NamedTuple):
    ok: bool
    ms: int
    error: str = ""


class Health:
    """Health of one daemon, as seen by one of its workers. ``health_checks``: that worker's health checks, once it has
    started."""

    def __init__(self, binary: str, host: str, workers: Workers, clock: Callable[[], float] = time.monotonic) -> None:
        self.binary, self.host, self.workers, self._clock = binary, host, workers, clock
        self.health_checks: HealthChecks | None = None
        self._lock = threading.Lock()
        self._looked_at, self._results = float("-inf"), dict[str, CheckResult]()

    def live(self) -> tuple[bool, dict[str, Any]]:
        """Return True if no worker's main loop is stuck, with details for JSON."""
        found = self.workers.all()
        return not any(one.stuck for one in found), self._described(found)

    def ready(self) -> tuple[bool, dict[str, Any]]:
        """Return True if every worker serves and all dependencies of this one respond, with details for JSON."""
        found = self.workers.all()
        serving = all(one.state is WorkerState.SERVING and not one.stuck for one in found)
        results = self._looked()
        detail = {**self._described(found),
                  "checks": {name: {"ok": one.ok, "ms": one.ms, **({"error": one.error} if one.error else {})}
                             for name, one in results.items()}}
        return serving and self.health_checks is not None and all(one.ok for one in results.values()), detail

    def checks(self) -> Mapping[str, bool]:
        """Return by name whether each check succeeded in its last run."""
        return {name: one.ok for name, one in self._results.items()}

    def _described(self, found: list[Worker]) -> dict[str, Any]:
        return {"daemon": self.binary, "host": self.host,
                "workers": [{"worker": one.number, "state": "stuck" if one.stuck else one.state.name.lower(),
                             "silent_seconds": round(one.silent_s, 1)} for one in found]}

    def _looked(self) -> dict[str, CheckResult]:
        """Return each check's result, at most ``CACHED_S`` old. One caller runs the checks, and others wait for its
        results."""
        with self._lock:
            if self.health_checks is not None and self._clock() - self._looked_at >= CACHED_S:
                self._results = {name: self._look(check) for name, check in self.health_checks.checks.items()}
                self._looked_at = self._clock()
            return self._results

    def _look(self, check: Callable[[], object]) -> CheckResult:
        began, error = self._clock(), ""
        with context.entered(context.internal()), context.waited_for(TIMEOUT_S, again=False):
            failure = failures.failure_of(check)
        if failure is not None:
            error = failure.message if isinstance(failure, errors.NovaError) else f"{type(failure).__name__}: {failure}"
        return CheckResult(not error, int(1000 * (self._clock() - began)), error)
