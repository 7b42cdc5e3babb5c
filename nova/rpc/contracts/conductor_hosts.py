"""The part of ``ConductorRPC`` about trust in hosts, and about orphans on them."""

from __future__ import annotations

from collections.abc import Mapping

from nova.model.base import HostName
from nova.model.guest.orphans import GuestTakeover, Orphan
from nova.model.host.services import EnrolledHost
from nova.rpc.interface import call


class EnrolmentCalls:
    """Enrollment of hosts, acceptance of their size, and expulsion."""

    @call(since="1.4")
    def enroll_host(self, host: HostName, runs: tuple[str, ...], addresses: tuple[str, ...] = (),
                    cell: str = "") -> str:
        """Enroll a host and return a token, with which it may register its secret once within a day. The token is not
        shown again. The host's consoles may use only these addresses; without any, the addresses that it reports first.
        ``cell``: the name or UUID of the host's cell; needed for a new host if several cells have hosts. Raises
        Forbidden for a daemon that does not run on hosts; NotFound for the cell; Conflict if the host is enrolled in
        another cell, or the cell is needed."""

    @call(since="1.4", reads=True)
    def list_enrolled_hosts(self) -> tuple[EnrolledHost, ...]:
        """Return all hosts that were ever enrolled, by name."""

    @call(since="1.5")
    def accept_host(self, host: HostName, room: Mapping[str, int]) -> None:
        """Accept this capacity of the host, by resource class, and use it. Raises NotFound if it is not enrolled."""

    @call(since="1.4")
    def expel_host(self, host: HostName) -> None:
        """Revoke the trust in a host, and send it no messages. Raises NotFound if it was never enrolled."""


class OrphanCalls:
    """Orphans: guests on hosts and allocations that no record explains."""

    @call(reads=True, since="1.7")
    def list_strangers(self, with_ended: bool) -> tuple[Orphan, ...]:
        """Return the orphans on hosts and in the allocations; ``with_ended``: including former ones."""

    @call(since="1.7")
    def look_for_strangers(self, host: str | None) -> int:
        """Request that one host (all compute hosts, for None) checks for orphans immediately, and return the number of
        hosts. Hosts report a guest that they saw twice."""

    @call(since="1.7")
    def remove_stranger(self, stranger_id: int) -> Orphan:
        """Request the removal of an orphan. Raises NotFound; Conflict if a record explains it by now, or it cannot be
        removed this way."""

    @call(since="1.7")
    def adopt_stranger(self, stranger_id: int, change: bool) -> GuestTakeover:
        """Return the guest to its server, or import it as a new server; without ``change``, only check. Raises
        NotFound; Conflict if a record explains it by now, or it cannot be imported."""
