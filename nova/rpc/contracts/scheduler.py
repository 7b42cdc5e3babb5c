"""What the conductor may ask of the scheduler, and tell it."""

from __future__ import annotations

from nova.model.host.hosts import HostStates
from nova.model.scheduling.decisions import PlacementRequest, Selection
from nova.rpc.interface import Contract, Timeout, call, cast


class SchedulerRPC(Contract):
    """It proposes; the conductor's claim decides."""

    topic, version = "scheduler", "1.3"

    @call(timeout=Timeout.SHORT)
    def select_hosts(self, request: PlacementRequest) -> tuple[Selection, ...]:
        """For each server, the best host and its alternates, or why there is none."""

    @cast(fanout=True)
    def update_hosts(self, states: HostStates) -> None:
        """Newer states of some hosts. Late, doubled and reordered messages do no harm."""
