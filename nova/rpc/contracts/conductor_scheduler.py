"""The part of the conductor for nova-scheduler. A scheduler's broker user cannot reach any other part."""

from __future__ import annotations

from nova.model.host.hosts import HostStates, NodeStamp
from nova.model.host.services import Alive, Heartbeat, Registered, Registration
from nova.rpc.contracts.conductor import ConductorRPC
from nova.rpc.interface import Contract, Timeout, call


class ConductorSchedulerRPC(Contract):
    """Registration of schedulers, and their queries about hosts; other daemons are refused."""

    topic, version, part_of = "conductor-scheduler", "1.1", ConductorRPC

    @call(timeout=Timeout.SHORT)
    def register(self, registration: Registration) -> Registered:
        """Register a scheduler."""

    @call(timeout=Timeout.SHORT)
    def heartbeat(self, beat: Heartbeat) -> Alive:
        """Record that a scheduler is alive."""

    @call(reads=True)
    def get_host_states(self, known: tuple[NodeStamp, ...], everything: bool) -> HostStates:
        """Return states that are newer than the scheduler's stamps (or all, with ``everything``)."""
