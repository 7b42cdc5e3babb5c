"""Tells compute hosts that what may reach their guests changed: each asks for it whole, so many changes are one call.

A host that is away is not told again: a compute reads the whole state at its start, and now and then.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable

from nova import errors
from nova.conductor.nova_network.coalescing import Batch, Coalescer
from nova.rpc.contracts.compute import ComputeRPC

LOG = logging.getLogger(__name__)

PATIENCE_S = 10.0  # how long whoever changed something waits for hosts that are slow


class _Round(Batch):
    """One call to come, and whether the host has taken it."""

    def __init__(self) -> None:
        super().__init__()
        self.sent = False


class FirewallUpdates:
    """``compute``: a ComputeRPC client."""

    def __init__(self, compute: ComputeRPC, patience_s: float = PATIENCE_S) -> None:
        self._compute, self._patience_s = compute, patience_s
        self._queues = Coalescer(_Round, self._refresh, "firewall-updates")

    def send(self, hosts: Iterable[str]) -> frozenset[str]:
        """Come back when the hosts have what is committed now, or were waited for long enough; those that may not."""
        rounds = self.begin(hosts)
        end = time.monotonic() + self._patience_s
        late = frozenset(host for host, one in rounds.items()
                         if not (one.done.wait(max(0.0, end - time.monotonic())) and one.sent))
        if late:
            LOG.warning("hosts that do not answer apply changed security groups later: %s", ", ".join(sorted(late)))
        return late

    def begin(self, hosts: Iterable[str]) -> dict[str, _Round]:
        """Have them told, without waiting for it."""
        return {host: self._queues.join(host)[0] for host in sorted(set(hosts))}

    def _refresh(self, host: str, current: _Round) -> None:
        try:
            self._compute.refresh_firewall(host)
            current.sent = True
        except errors.NovaError as error:
            LOG.info("host %s was not told of changed security groups: %s", host, error.message)
