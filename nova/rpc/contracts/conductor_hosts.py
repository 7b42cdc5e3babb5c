"""The part of ``ConductorRPC`` that says which hosts are believed, and what to do with what is found there."""

from __future__ import annotations

from collections.abc import Mapping

from nova.model.base import HostName
from nova.model.guest.strangers import Adoption, Stranger
from nova.model.host.services import EnrolledHost
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


class StrangerCalls:
    """What hosts and the ledger have that no record explains."""

    @call(reads=True, since="1.7")
    def list_strangers(self, with_ended: bool) -> tuple[Stranger, ...]:
        """What hosts and the ledger have that no record explains; ``with_ended``: what was, too."""

    @call(since="1.7")
    def look_for_strangers(self, host: str | None) -> int:
        """Have hosts look at once (all compute hosts, for None): how many. They report a guest that they saw twice."""

    @call(since="1.7")
    def remove_stranger(self, stranger_id: int) -> Stranger:
        """Have it removed. NotFound; Conflict: a record explains it by now, or it cannot be removed so."""

    @call(since="1.7")
    def adopt_stranger(self, stranger_id: int, change: bool) -> Adoption:
        """Make the guest its server's again, or a server's that no record knows; without ``change`` only look.
        NotFound; Conflict: a record explains it by now, or it cannot be adopted."""
