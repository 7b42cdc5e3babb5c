"""Health of this host: consecutive failed builds, and the measurements of its monitors."""

from __future__ import annotations

import contextlib
import logging
import threading
from collections.abc import Iterator, Mapping, Sequence

import msgspec

from nova import errors, failures
from nova.compute.orders.orders import Work
from nova.compute.reports.monitors import Monitor
from nova.model.host.hosts import Node

LOG = logging.getLogger(__name__)

#: Outcomes of builds that say nothing about the host.
NOT_OURS = (errors.Overtaken, errors.host.OrderCannotAsk)
STEP = 0.05  # metrics between 0 and 1 change constantly; smaller changes are not reported


class BuildHealth:
    """Consecutive failed builds since the service's start, and monitors. After a repair, an operator resets the count
    by a restart."""

    def __init__(self, monitors: Sequence[Monitor] = ()) -> None:
        self._monitors = tuple(monitors)
        self._failed = 0
        self._unreported = False
        self._lock = threading.Lock()

    def built(self, well: bool) -> None:
        """Count a finished build."""
        with self._lock:
            before, self._failed = self._failed, 0 if well else self._failed + 1
            self._unreported |= before != self._failed

    @contextlib.contextmanager
    def counting(self, work: Work) -> Iterator[None]:
        """Count the build in the block, unless a newer order stopped it: that says nothing about the host."""
        def count(error: Exception) -> None:
            if not isinstance(error, NOT_OURS) and work.stopped_error() is None:
                self.built(well=False)
        with failures.reported_to(count, on=Exception):
            yield
        self.built(well=True)

    def take_news(self) -> bool:
        """Return whether the count changed since the last call."""
        with self._lock:
            unreported, self._unreported = self._unreported, False
        return unreported

    def measure(self) -> Mapping[str, float]:
        """Return the current metrics. A failing monitor contributes none."""
        found: dict[str, float] = {}
        for monitor in self._monitors:
            with failures.keep_running(LOG, "a monitor of this host failed; omitting its metrics"):
                found.update(monitor.metrics())
        return found

    def of(self, node: Node, metrics: Mapping[str, float]) -> Node:
        """Return the node with the metrics and its failed builds."""
        return msgspec.structs.replace(node, metrics=metrics, failed_builds=self._failed)


def moved(old: Mapping[str, float], new: Mapping[str, float]) -> bool:
    """True if metrics must be reported: their names differ, or a share (a "percent") changed enough. Changes of
    counters and of the frequency alone are not reported."""
    return old.keys() != new.keys() or any(
        abs(value - old[name]) >= STEP for name, value in new.items() if name.endswith("percent"))
