"""How this host is doing: builds that failed on it one after another, and what its monitors measure."""

from __future__ import annotations

import logging
import threading
from collections.abc import Mapping, Sequence

import msgspec

from nova import errors
from nova.compute.orders.batches import Do
from nova.compute.orders.kind import OrderKind
from nova.compute.orders.orders import Work
from nova.compute.orders.permission import BatchGate
from nova.compute.reports.monitors import Monitor
from nova.model.guest.orders import Outcome
from nova.model.host.hosts import Node
from nova.model.server.states import PowerState

LOG = logging.getLogger(__name__)

#: Builds that end so say nothing of the host.
NOT_OURS = (errors.Overtaken, errors.host.OrderCannotAsk)
STEP = 0.05  # metrics between 0 and 1 go up and down all the time; less than this is no news


class BuildHealth:
    """Counted since the daemon's start: an operator who repaired something starts it anew."""

    def __init__(self, monitors: Sequence[Monitor] = ()) -> None:
        self._monitors = tuple(monitors)
        self._failed = 0
        self._unreported = False
        self._lock = threading.Lock()

    def built(self, well: bool) -> None:
        """A build ended."""
        with self._lock:
            before, self._failed = self._failed, 0 if well else self._failed + 1
            self._unreported |= before != self._failed

    def take_news(self) -> bool:
        """Whether the count changed since this was asked last."""
        with self._lock:
            unreported, self._unreported = self._unreported, False
        return unreported

    def measure(self) -> Mapping[str, float]:
        """What the monitors say now. One that fails says nothing."""
        found: dict[str, float] = {}
        for monitor in self._monitors:
            try:
                found.update(monitor.metrics())
            except Exception:
                LOG.exception("a monitor of this host failed; its metrics are left out")
        return found

    def of(self, node: Node, metrics: Mapping[str, float]) -> Node:
        """The node with what is measured, and with its failed builds."""
        return msgspec.structs.replace(node, metrics=metrics, failed_builds=self._failed)


def counting(condition: BuildHealth, kind: OrderKind, do: Do) -> Do:
    """What an order does; a build is counted."""
    if not kind.counts:
        return do

    def counted(order: object, work: Work, gate: BatchGate) -> PowerState | Outcome:
        try:
            done = do(order, work, gate)
        except NOT_OURS:
            raise
        except Exception:
            if work.stopped_error() is None:
                condition.built(well=False)
            raise
        condition.built(well=True)
        return done
    return counted


def moved(old: Mapping[str, float], new: Mapping[str, float]) -> bool:
    """Whether metrics are news: others than before, or a share (a "percent") that moved far enough. What only counts
    on, and the frequency, are none by themselves."""
    return old.keys() != new.keys() or any(
        abs(value - old[name]) >= STEP for name, value in new.items() if name.endswith("percent"))
