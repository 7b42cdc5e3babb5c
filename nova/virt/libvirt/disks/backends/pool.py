"""A Ceph pool as a whole: the hosts that use it, and its trash, with images that were still open when removed."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable

from nova import concurrency, failures
from nova.privileged.rbd import Rbd

LOG = logging.getLogger(__name__)

HOSTS = "nova-hosts"  # an empty image whose metadata is the hosts
COUNTED_FOR_S = 600.0  # how long a host uses its count
SILENT_S = 86400.0  # after this time without a report, a host does not count


class PoolHosts:
    """The number of hosts that keep disks in a pool: each writes its time there, by its name, once in ten minutes."""

    def __init__(self, host: Callable[[], str], now: Callable[[], float] = time.time) -> None:
        self._host, self._now = host, now
        self._known, self._until = 1, 0.0

    def count(self, rbd: Rbd) -> int:
        """Return the number of hosts, including this one. Raises host.Rbd."""
        now = self._now()
        if now >= self._until:
            rbd.ensure(HOSTS)
            rbd.note(HOSTS, self._host() or "-", str(int(now)))
            seen = [float(at) for at in rbd.notes(HOSTS).values() if at.isdecimal()]
            self._known = max(1, sum(now - at < SILENT_S for at in seen))
            self._until = now + COUNTED_FOR_S
        return self._known


class PoolTrash:
    """Empties a pool's trash in its own thread: at most ``retries`` attempts, ``interval_s`` apart. Images that remain
    are retried when the next image cannot be removed, or at the next start."""

    def __init__(self, retries: int, interval_s: float, clock: concurrency.Clock) -> None:
        self._retries, self._interval_s, self._clock = retries, interval_s, clock
        self._working = threading.Lock()

    def watch(self, rbd: Rbd) -> None:
        """Start to empty the trash, and return immediately. Does nothing if that is in progress."""
        if self._working.acquire(blocking=False):
            concurrency.spawn(self._work, rbd, name="trash of a pool")

    def _work(self, rbd: Rbd) -> None:
        try:
            with failures.best_effort(LOG, "could not empty the trash of pool %s: %s", rbd.pool.name,
                                      level=logging.ERROR):
                self.empty(rbd)
        finally:
            self._working.release()

    def empty(self, rbd: Rbd) -> None:
        """Block until the trash is empty, or all attempts have failed."""
        for _ in range(self._retries):
            if not rbd.empty_trash():
                return
            self._clock.sleep(self._interval_s)
        if left := rbd.empty_trash():
            LOG.error("%d images in the trash of pool %s are still open, and were kept: see `rbd trash ls %s`", left,
                      rbd.pool.name, rbd.pool.name)
