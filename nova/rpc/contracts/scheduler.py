"""Calls of the conductor to the scheduler."""

from __future__ import annotations

from nova.model.host.hosts import HostStates
from nova.model.scheduling.decisions import PlacementRequest, Selection
from nova.rpc.interface import Contract, Timeout, call, cast


class SchedulerRPC(Contract):
    """Host selection. The scheduler proposes; the conductor's claim decides."""

    topic, version = "scheduler", "1.5"

    @call(timeout=Timeout.SHORT)
    def select_hosts(self, request: PlacementRequest) -> tuple[Selection, ...]:
        """Return the best host and its alternates for each server, or the reason why there is none."""

    @cast(fanout=True)
    def update_hosts(self, states: HostStates) -> None:
        """Send newer states of some hosts. Late, duplicate and reordered messages do no harm."""
