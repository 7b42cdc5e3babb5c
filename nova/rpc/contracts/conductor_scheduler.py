"""The part of the conductor that nova-scheduler asks: a scheduler's broker user reaches nothing else there."""

from __future__ import annotations

from nova.model.host.hosts import HostStates, NodeStamp
from nova.model.host.services import Alive, Heartbeat, Registered, Registration
from nova.rpc.contracts.conductor import ConductorRPC
from nova.rpc.interface import Contract, Timeout, call


class ConductorSchedulerRPC(Contract):
    """A scheduler says that it is there, and learns of hosts. Of any other daemon, nothing is believed here."""

    topic, version, part_of = "conductor-scheduler", "1.0", ConductorRPC

    @call(timeout=Timeout.SHORT)
    def register(self, registration: Registration) -> Registered:
        """A scheduler says what it is."""

    @call(timeout=Timeout.SHORT)
    def heartbeat(self, beat: Heartbeat) -> Alive:
        """A scheduler is alive."""

    @call(reads=True)
    def get_host_states(self, known: tuple[NodeStamp, ...], everything: bool) -> HostStates:
        """States newer than the stamps it has (or ``everything``)."""
