"""The part of the conductor for metadata services in upstream mode."""

from __future__ import annotations

from nova.model.base import HostName
from nova.model.guest.guests import GuestFacts, GuestPassword, GuestQuery
from nova.model.host.services import Alive, Heartbeat, Registered, Registration
from nova.rpc.interface import Contract, Timeout, call


class ConductorMetadataRPC(Contract):
    """Registration of metadata services, and their queries about guests. In upstream mode it is a control daemon:
    deployment tools run it in containers that have no host secret. In bounded mode it is one of its host's daemons, and
    no server has this contract."""

    topic, version = "conductor-metadata", "1.0"

    @call(timeout=Timeout.SHORT)
    def register(self, registration: Registration) -> Registered:
        """Register a metadata service."""

    @call(timeout=Timeout.SHORT)
    def heartbeat(self, beat: Heartbeat) -> Alive:
        """Record that a metadata service is alive."""

    @call(repeatable=True)
    def guest_facts(self, host: HostName, query: GuestQuery) -> GuestFacts:
        """Return the data that a guest may have about itself. Raises NotFound if the query matches no live server."""

    @call(sensitive=True)
    def set_guest_password(self, host: HostName, password: GuestPassword) -> None:
        """Store the encrypted password that a guest posted. Raises Conflict if one is stored already."""
