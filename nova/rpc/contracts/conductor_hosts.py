"""The part of ``ConductorRPC`` that says which hosts are believed."""

from __future__ import annotations

from collections.abc import Mapping

from nova.model.base import HostName
from nova.model.services import EnrolledHost
from nova.rpc.interface import call


class EnrolmentCalls:
    """Enrolling hosts, accepting their size, expelling them."""

    @call(since="1.4")
    def enroll_host(self, host: HostName, runs: tuple[str, ...], addresses: tuple[str, ...] = ()) -> str:
        """A token, by which the host may bring its secret once within a day; it is shown to nobody again. Its consoles
        may be at these addresses alone; none: at the addresses that it reports first. Forbidden: a daemon that is
        not for hosts."""

    @call(since="1.4", reads=True)
    def list_enrolled_hosts(self) -> tuple[EnrolledHost, ...]:
        """All that were ever enrolled, by name."""

    @call(since="1.5")
    def accept_host(self, host: HostName, room: Mapping[str, int]) -> None:
        """Believe that the host has this room, by resource class, and use it. NotFound: it is not enrolled."""

    @call(since="1.4")
    def expel_host(self, host: HostName) -> None:
        """Believe nothing more of the host, and send it nothing. NotFound: it was never enrolled."""
