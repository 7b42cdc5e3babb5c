"""The part of the conductor that metadata services ask in upstream mode."""

from __future__ import annotations

from nova.model.base import HostName
from nova.model.guest.guests import GuestFacts, GuestPassword, GuestQuery
from nova.model.host.services import Alive, Heartbeat, Registered, Registration
from nova.rpc.interface import Contract, Timeout, call


class ConductorMetadataRPC(Contract):
    """A metadata service says that it is there, and asks for guests. It is a control daemon: deployment tools run it in
    containers that keep no secret of a host. In bounded mode it is one of its host's daemons, and nobody serves
    this."""

    topic, version = "conductor-metadata", "1.0"

    @call(timeout=Timeout.SHORT)
    def register(self, registration: Registration) -> Registered:
        """A metadata service says what it is."""

    @call(timeout=Timeout.SHORT)
    def heartbeat(self, beat: Heartbeat) -> Alive:
        """A metadata service is alive."""

    @call(repeatable=True)
    def guest_facts(self, host: HostName, query: GuestQuery) -> GuestFacts:
        """All that a guest may know of itself. NotFound when no live server is meant."""

    @call(sensitive=True)
    def set_guest_password(self, host: HostName, password: GuestPassword) -> None:
        """Keep the encrypted password a guest posted. Conflict when one is kept already."""
