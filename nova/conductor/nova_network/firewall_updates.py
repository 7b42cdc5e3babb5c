"""Tells compute hosts that what may reach their guests changed: each asks for it whole, so many changes are one call.

A host has a lane of its own: while one call to it is on its way, those who come wait together for the next, which
begins after all their changes are committed; and a host that is away keeps nobody from telling the others. It is not
asked again for that: a compute reads the whole state at its start, and now and then.
"""

from __future__ import annotations

import contextvars
import logging
import threading
import time
from collections.abc import Iterable

from nova import concurrency, errors
from nova.conf.base import Options

LOG = logging.getLogger(__name__)

PATIENCE_S = 10.0  # how long whoever changed something waits for hosts that are slow


class _Round:
    """One call to come, and its end."""

    def __init__(self) -> None:
        self.done = threading.Event()
        self.told = False


class RulesTeller:
    """``compute``: a ComputeRPC client."""

    def __init__(self, compute: Options, patience_s: float = PATIENCE_S) -> None:
        self._compute, self._patience_s = compute, patience_s
        self._lock = threading.Lock()
        self._next: dict[str, _Round] = {}
        self._under_way: set[str] = set()

    def tell(self, hosts: Iterable[str]) -> frozenset[str]:
        """Come back when the hosts have what is committed now, or were waited for long enough; those that may not."""
        rounds = self.begin(hosts)
        end = time.monotonic() + self._patience_s
        late = frozenset(host for host, one in rounds.items()
                         if not (one.done.wait(max(0.0, end - time.monotonic())) and one.told))
        if late:
            LOG.warning("hosts that do not answer apply changed security groups later: %s", ", ".join(sorted(late)))
        return late

    def begin(self, hosts: Iterable[str]) -> dict[str, _Round]:
        """Have them told, without waiting for it."""
        rounds: dict[str, _Round] = {}
        with self._lock:
            for host in sorted(set(hosts)):
                rounds[host] = self._next.setdefault(host, _Round())
                if host not in self._under_way:
                    self._under_way.add(host)
                    concurrency.spawn(contextvars.copy_context().run, self._lead, host, name="rules-teller")
        return rounds

    def _lead(self, host: str) -> None:
        while True:
            with self._lock:
                current = self._next.pop(host, None)
                if current is None:
                    self._under_way.discard(host)
                    return
            try:
                self._compute.refresh_firewall(host)
                current.told = True
            except errors.NovaError as error:
                LOG.info("host %s was not told of changed security groups: %s", host, error.message)
            except Exception:  # the next round must come whatever happened in this one
                LOG.exception("host %s could not be told of changed security groups", host)
            finally:
                current.done.set()
