"""Hosts that cannot reach their hypervisors, as they report it: logged, and told on the notification topics."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable

from nova.conductor.engine.announce import resources
from nova.conductor.engine.deps import Deps
from nova.model.base import HostName
from nova.model.host.hosts import HypervisorDown

LOG = logging.getLogger(__name__)

EVERY_S = 60.0  # of one host one report counts: it may say what it likes, and as often
MOST_LOGGED = 300  # characters


class HypervisorReports:
    """Of each host the time of the report that was told last: as many as there are hosts."""

    def __init__(self, deps: Deps, clock: Callable[[], float] = time.monotonic) -> None:
        self._deps, self._clock = deps, clock
        self._reported_at: dict[HostName, float] = {}
        self._lock = threading.Lock()

    def down(self, host: HostName, report: HypervisorDown) -> None:
        """Log it and tell of it, unless that was done within the last minute."""
        with self._lock:
            now = self._clock()
            if now - self._reported_at.get(host, -EVERY_S) < EVERY_S:
                return
            self._reported_at[host] = now
        LOG.warning("host %s cannot reach its hypervisor: %s", host, " ".join(report.message.split())[:MOST_LOGGED])
        resources.hypervisor_down(self._deps, host, report)
