"""The part of the conductor for console proxies. A proxy's broker user cannot reach any other part."""

from __future__ import annotations

from nova.model.host.services import Alive, Heartbeat, Registered, Registration
from nova.rpc.contracts.conductor import ConductorRPC
from nova.rpc.interface import Contract, Timeout, call


class ConductorProxyRPC(Contract):
    """Registration of console proxies; other daemons are refused."""

    topic, version, part_of = "conductor-proxy", "1.0", ConductorRPC

    @call(timeout=Timeout.SHORT)
    def register(self, registration: Registration) -> Registered:
        """Register a console proxy."""

    @call(timeout=Timeout.SHORT)
    def heartbeat(self, beat: Heartbeat) -> Alive:
        """Record that a console proxy is alive."""
