"""Whether a daemon lives (its main loops turn, it hears what is sent to it) and is ready (what it needs answers)."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, Protocol

from nova import context, errors
from nova.monitoring.workers import Worker, Workers, WorkerState

CACHED_S = 5.0  # an answer serves all who ask meanwhile: nobody can load a broker or a database by asking
PATIENCE_S = 8.0


class Collector(Protocol):
    """What prometheus_client's registry asks for metrics when somebody reads them."""

    def collect(self) -> Any:
        """Families of metrics, as they are now."""


class Vitals(NamedTuple):
    """``checks``: by name, what raises while the daemon cannot do its work. ``deaf``: why the process should be
    replaced, empty while it hears. ``collectors``: metrics that are read, not counted."""

    checks: Mapping[str, Callable[[], object]] = {}
    deaf: Callable[[], str] = lambda: ""
    collectors: tuple[Collector, ...] = ()


class CheckResult(NamedTuple):
    ok: bool
    ms: int
    error: str = ""


class Health:
    """Of one daemon, as one of its workers sees it. ``vitals``: of that worker, once it has started."""

    def __init__(self, binary: str, host: str, workers: Workers, clock: Callable[[], float] = time.monotonic) -> None:
        self.binary, self.host, self.workers, self._clock = binary, host, workers, clock
        self.vitals: Vitals | None = None
        self._lock = threading.Lock()
        self._looked_at, self._results = float("-inf"), dict[str, CheckResult]()

    def live(self) -> tuple[bool, dict[str, Any]]:
        """Whether no worker's main loop stands still; and the same in detail, for JSON."""
        found = self.workers.all()
        return not any(one.stuck for one in found), self._described(found)

    def ready(self) -> tuple[bool, dict[str, Any]]:
        """Whether every worker serves and what this one needs answers; and the same in detail, for JSON."""
        found = self.workers.all()
        serving = all(one.state is WorkerState.SERVING and not one.stuck for one in found)
        results = self._looked()
        detail = {**self._described(found),
                  "checks": {name: {"ok": one.ok, "ms": one.ms, **({"error": one.error} if one.error else {})}
                             for name, one in results.items()}}
        return serving and self.vitals is not None and all(one.ok for one in results.values()), detail

    def checks(self) -> Mapping[str, bool]:
        """By name, whether each check succeeded when it was made last."""
        return {name: one.ok for name, one in self._results.items()}

    def _described(self, found: list[Worker]) -> dict[str, Any]:
        return {"daemon": self.binary, "host": self.host,
                "workers": [{"worker": one.number, "state": "stuck" if one.stuck else one.state.name.lower(),
                             "silent_seconds": round(one.silent_s, 1)} for one in found]}

    def _looked(self) -> dict[str, CheckResult]:
        """Each check's result, at most ``CACHED_S`` old; one caller looks, the others wait for what it finds."""
        with self._lock:
            if self.vitals is not None and self._clock() - self._looked_at >= CACHED_S:
                self._results = {name: self._look(check) for name, check in self.vitals.checks.items()}
                self._looked_at = self._clock()
            return self._results

    def _look(self, check: Callable[[], object]) -> CheckResult:
        began, error = self._clock(), ""
        try:
            with context.entered(context.internal()), context.waited_for(PATIENCE_S, again=False):
                check()
        except errors.NovaError as failure:
            error = failure.message
        except Exception as failure:
            error = f"{type(failure).__name__}: {failure}"
        return CheckResult(not error, int(1000 * (self._clock() - began)), error)
