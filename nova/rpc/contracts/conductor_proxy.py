"""The part of the conductor that console proxies ask: a proxy's broker user reaches nothing else there."""

from __future__ import annotations

from nova.model.host.services import Alive, Heartbeat, Registered, Registration
from nova.rpc.contracts.conductor import ConductorRPC
from nova.rpc.interface import Contract, Timeout, call


class ConductorProxyRPC(Contract):
    """A console proxy says that it is there. Of any other daemon, nothing is believed here."""

    topic, version, part_of = "conductor-proxy", "1.0", ConductorRPC

    @call(timeout=Timeout.SHORT)
    def register(self, registration: Registration) -> Registered:
        """A console proxy says what it is."""

    @call(timeout=Timeout.SHORT)
    def heartbeat(self, beat: Heartbeat) -> Alive:
        """A console proxy is alive."""
