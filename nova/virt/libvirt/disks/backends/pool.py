"""A pool as a whole: who has disks in it, and what could not go at once because somebody still had it open."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable

from nova import concurrency, errors
from nova.privileged.rbd import Rbd

LOG = logging.getLogger(__name__)

HOSTS = "nova-hosts"  # an image without content, whose notes are the hosts
COUNTED_FOR_S = 600.0  # so long a host believes its count
SILENT_S = 86400.0  # a host that has said nothing for so long has gone


class PoolHosts:
    """How many hosts keep disks in a pool: each notes the time there, by its own name, once in ten minutes."""

    def __init__(self, host: Callable[[], str], now: Callable[[], float] = time.time) -> None:
        self._host, self._now = host, now
        self._known, self._until = 1, 0.0

    def count(self, rbd: Rbd) -> int:
        """This host counts itself. host.Rbd."""
        now = self._now()
        if now >= self._until:
            rbd.ensure(HOSTS)
            rbd.note(HOSTS, self._host() or "-", str(int(now)))
            seen = [float(at) for at in rbd.notes(HOSTS).values() if at.isdecimal()]
            self._known = max(1, sum(now - at < SILENT_S for at in seen))
            self._until = now + COUNTED_FOR_S
        return self._known


class PoolTrash:
    """Empties it in a thread of its own: ``retries`` times at most, ``interval_s`` apart. What is left then goes when
    the next image cannot be removed, or at the next start."""

    def __init__(self, retries: int, interval_s: float, clock: concurrency.Clock) -> None:
        self._retries, self._interval_s, self._clock = retries, interval_s, clock
        self._working = threading.Lock()

    def watch(self, rbd: Rbd) -> None:
        """Returns at once. Harmless while it is being emptied."""
        if self._working.acquire(blocking=False):
            concurrency.spawn(self._work, rbd, name="trash of a pool")

    def _work(self, rbd: Rbd) -> None:
        try:
            self.empty(rbd)
        except errors.NovaError as error:
            LOG.error("the trash of pool %s cannot be emptied: %s", rbd.pool.name, error)
        finally:
            self._working.release()

    def empty(self, rbd: Rbd) -> None:
        """Blocks until it is empty, or given up."""
        for _ in range(self._retries):
            if not rbd.empty_trash():
                return
            self._clock.sleep(self._interval_s)
        if left := rbd.empty_trash():
            LOG.error("%d images in the trash of pool %s are still open, and stay for now: `rbd trash ls %s`", left,
                      rbd.pool.name, rbd.pool.name)
