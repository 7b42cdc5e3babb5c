"""The host-facing contract, small on purpose: each call is checked against the host that makes it."""

from __future__ import annotations

from nova.model.base import HostName
from nova.model.guest.guests import GuestFacts, GuestPassword, GuestQuery
from nova.model.guest.orders import ExpectedGuest, Outcome, Permission, PowerReport
from nova.model.guest.strangers import StrangerRemoval, StrangerReport
from nova.model.host.hosts import HypervisorDown, Inventory
from nova.model.host.services import Alive, Heartbeat, KnownHost, Registered, Registration
from nova.model.network.networks import LeaseChange, NetworkOnHost
from nova.model.network.security_groups import HostFirewall
from nova.model.server.migrations import ProgressReport
from nova.model.volumes import VolumeCounts
from nova.rpc.interface import Contract, Timeout, call, cast


class ConductorHostRPC(Contract):
    """My registration, heartbeat, inventory and guests; what my guests need; may I proceed."""

    topic, version = "conductor-host", "1.9"
    with_hosts = True

    @call(timeout=Timeout.SHORT, sensitive=True, introduces=True)
    def register(self, host: HostName, registration: Registration) -> Registered:
        """A host's daemon says what it is; the answer has its debts. Conflict: name and id don't belong together.
        Forbidden: a known host without its proof, or a daemon that it was not enrolled for."""

    @call(timeout=Timeout.SHORT, sensitive=True, since="1.5")
    def change_secret(self, host: HostName, secret: str) -> None:
        """Prove me by this from now on; by the secret before for an hour more. Repeating it is harmless."""

    @call(timeout=Timeout.SHORT, repeatable=True)
    def heartbeat(self, host: HostName, beat: Heartbeat) -> Alive:
        """I am alive."""

    @cast(since="1.2", repeatable=True)
    def still_here(self, host: HostName, beat: Heartbeat) -> None:
        """I am alive, and ask nothing."""

    @call(timeout=Timeout.SHORT, since="1.8", reads=True)
    def known_host(self, host: HostName) -> KnownHost:
        """For ``nova-manage doctor`` on a host: what the conductors know of its daemons."""

    @call()
    def report_inventory(self, host: HostName, inventory: Inventory) -> None:
        """What this host has. Repeating it is harmless; an older version changes nothing."""

    @call(since="1.8", timeout=Timeout.SHORT)
    def report_hypervisor_down(self, host: HostName, report: HypervisorDown) -> None:
        """This host cannot reach its hypervisor. Of many reports in a minute one counts."""

    @call()
    def report_power(self, host: HostName, report: PowerReport) -> None:
        """Power states of this host's guests; what is not this host's is ignored."""

    @call()
    def report_outcomes(self, host: HostName, operation_ids: tuple[int, ...], outcomes: tuple[Outcome, ...]) -> None:
        """Guests of a running batch that are finished before it is."""

    @call(timeout=Timeout.SHORT, repeatable=True)
    def may_proceed(self, host: HostName, asked: tuple[Permission, ...]) -> tuple[Permission, ...]:
        """Before a point of no return: which of these epochs are still the newest. One indexed read."""

    @call(since="1.2", timeout=Timeout.SHORT)
    def report_progress(self, host: HostName, reports: tuple[ProgressReport, ...]) -> None:
        """How far the live migrations of this host's guests are; what is not this host's is ignored."""

    @call(repeatable=True)
    def expected_guests(self, host: HostName, have: tuple[str, ...]) -> tuple[ExpectedGuest, ...]:
        """What should be here, and, of the uuids it has beside that, those an explicit record says are gone."""

    @call(since="1.8")
    def report_strangers(self, host: HostName, report: StrangerReport) -> tuple[StrangerRemoval, ...]:
        """What this host has that is not in its ``expected_guests``, all of it; the answer: what an operator wants to
        be removed, and no record explains. Repeating it is harmless."""

    @call()
    def debt_paid(self, host: HostName, debt_id: int) -> None:
        """What was owed is done; its claim goes back."""

    @call(since="1.8")
    def volumes_given_up(self, host: HostName, server_uuid: str, volume_ids: tuple[str, ...]) -> None:
        """A guest gave volumes up after their detach had failed. What is not this host's is ignored. While an
        operation works on the server, all is ignored: say it again."""

    @call(since="1.8")
    def report_volume_usage(self, host: HostName, counts: tuple[VolumeCounts, ...]) -> None:
        """What guests did with their volumes since they were started. What is not this host's is ignored."""

    @call(repeatable=True)
    def guest_facts(self, host: HostName, query: GuestQuery) -> GuestFacts:
        """For the metadata service: NotFound when no live server has that address."""

    @call(sensitive=True)
    def set_guest_password(self, host: HostName, password: GuestPassword) -> None:
        """Keep the encrypted password a guest posted. Conflict when one is kept already."""

    @call(since="1.3", repeatable=True)
    def host_firewall(self, host: HostName) -> HostFirewall:
        """For nova-compute: what may reach this host's guests, all of it, as it is committed now."""

    @call(since="1.5", timeout=Timeout.SHORT, repeatable=True)
    def guest_ranges(self, host: HostName) -> tuple[str, ...]:
        """Of all guests of the cell: their networks' ranges and the floating addresses, in as few ranges as can be.
        None with Neutron."""

    @call(repeatable=True)
    def networks_on_host(self, host: HostName) -> tuple[NetworkOnHost, ...]:
        """For nova-network: every network this host serves, with the addresses allocated in it."""

    @call(repeatable=True)
    def network_for_guest(self, host: HostName, network_uuid: str) -> NetworkOnHost:
        """One network this host serves, now."""

    @call()
    def report_lease(self, host: HostName, lease: LeaseChange) -> None:
        """dnsmasq leased or released an address. Repeating it is harmless."""
