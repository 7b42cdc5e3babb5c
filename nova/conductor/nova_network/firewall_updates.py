"""Notifications of compute hosts about changed firewalls. Each host then reads its whole firewall, so that many changes
need one call.

An unreachable host gets no second call: nova-compute reads the whole state at its start, and periodically.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable

from nova import failures
from nova.conductor.nova_network.coalescing import Batch, Coalescer
from nova.rpc.contracts.compute import ComputeRPC

LOG = logging.getLogger(__name__)

TIMEOUT_S = 10.0  # longest wait of a changing call for slow hosts


class _Round(Batch):
    """A pending call, and whether the host has accepted it."""

    def __init__(self) -> None:
        super().__init__()
        self.sent = False


class FirewallUpdates:
    """Firewall updates for compute hosts. ``compute``: a ComputeRPC client."""

    def __init__(self, compute: ComputeRPC, timeout_s: float = TIMEOUT_S) -> None:
        self._compute, self._timeout_s = compute, timeout_s
        self._queues = Coalescer(_Round, self._refresh, "firewall-updates")

    def send(self, hosts: Iterable[str]) -> frozenset[str]:
        """Wait until the hosts have the state that is committed now, or until the timeout. Returns the hosts that may
        not have it."""
        rounds = self.begin(hosts)
        end = time.monotonic() + self._timeout_s
        late = frozenset(host for host, one in rounds.items()
                         if not (one.done.wait(max(0.0, end - time.monotonic())) and one.sent))
        if late:
            LOG.warning("hosts did not confirm changed security groups and will apply them later: %s",
                        ", ".join(sorted(late)))
        return late

    def begin(self, hosts: Iterable[str]) -> dict[str, _Round]:
        """Start the notifications without waiting for them."""
        return {host: self._queues.join(host)[0] for host in sorted(set(hosts))}

    def _refresh(self, host: str, current: _Round) -> None:
        with failures.best_effort(LOG, "could not notify host %s of changed security groups: %s", host,
                level=logging.INFO):
            self._compute.refresh_firewall(host)
            current.sent = True
