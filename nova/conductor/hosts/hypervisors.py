"""Reports of hosts that cannot reach their hypervisors: logged, and sent as notifications."""

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

EVERY_S = 60.0  # at most one report of a host is used per interval: a host may send any number
MOST_LOGGED = 300  # characters


class HypervisorReports:
    """Rate limit of hypervisor reports: the time of each host's last published one. Memory is bounded by the number of
    hosts."""

    def __init__(self, deps: Deps, clock: Callable[[], float] = time.monotonic) -> None:
        self._deps, self._clock = deps, clock
        self._reported_at: dict[HostName, float] = {}
        self._lock = threading.Lock()

    def down(self, host: HostName, report: HypervisorDown) -> None:
        """Log the report and send a notification, unless that was done within the last minute."""
        with self._lock:
            now = self._clock()
            if now - self._reported_at.get(host, -EVERY_S) < EVERY_S:
                return
            self._reported_at[host] = now
        LOG.warning("host %s cannot reach its hypervisor: %s", host, " ".join(report.message.split())[:MOST_LOGGED])
        resources.hypervisor_down(self._deps, host, report)
