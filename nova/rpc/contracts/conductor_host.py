"""Calls of hosts to the conductor. The contract is small on purpose: each call is checked against the calling host."""

from __future__ import annotations

from nova.model.base import HostName
from nova.model.guest.guests import GuestFacts, GuestPassword, GuestQuery
from nova.model.guest.orders import ExpectedGuest, Outcome, Permission, PowerReport
from nova.model.guest.orphans import OrphanRemoval, OrphanReport
from nova.model.host.hosts import HypervisorDown, Inventory
from nova.model.host.services import Alive, Heartbeat, KnownHost, Registered, Registration
from nova.model.network.networks import LeaseChange, NetworkOnHost
from nova.model.network.security_groups import HostFirewall
from nova.model.server.migrations import ProgressReport
from nova.model.volumes import VolumeCounts
from nova.rpc.interface import Contract, Timeout, call, cast


class ConductorHostRPC(Contract):
    """Registration, heartbeat, inventory and guests of a host, data for its guests, and permission to proceed."""

    topic, version = "conductor-host", "1.9"
    with_hosts = True

    @call(timeout=Timeout.SHORT, sensitive=True, introduces=True)
    def register(self, host: HostName, registration: Registration) -> Registered:
        """Register a host's daemon. The answer contains the host's pending cleanups. Raises Conflict if name and id do
        not belong together. Raises Forbidden for a known host without its proof, or a daemon that the host was not
        enrolled for."""

    @call(timeout=Timeout.SHORT, sensitive=True, since="1.5")
    def change_secret(self, host: HostName, secret: str) -> None:
        """Replace the host's secret. The previous one stays valid for an hour. Idempotent."""

    @call(timeout=Timeout.SHORT, repeatable=True)
    def heartbeat(self, host: HostName, beat: Heartbeat) -> Alive:
        """Record that the host is alive."""

    @cast(since="1.2", repeatable=True)
    def still_here(self, host: HostName, beat: Heartbeat) -> None:
        """Record that the host is alive, without a reply."""

    @call(timeout=Timeout.SHORT, since="1.8", reads=True)
    def known_host(self, host: HostName) -> KnownHost:
        """Return the conductors' data about the host's daemons, for ``nova-manage doctor`` on that host."""

    @call()
    def report_inventory(self, host: HostName, inventory: Inventory) -> None:
        """Report the host's inventory. Idempotent; an older version has no effect."""

    @call(since="1.8", timeout=Timeout.SHORT)
    def report_hypervisor_down(self, host: HostName, report: HypervisorDown) -> None:
        """Report that the host cannot reach its hypervisor. Of many reports in a minute, one counts."""

    @call()
    def report_power(self, host: HostName, report: PowerReport) -> None:
        """Report power states of the host's guests; other hosts' guests are ignored."""

    @call()
    def report_outcomes(self, host: HostName, operation_ids: tuple[int, ...], outcomes: tuple[Outcome, ...]) -> None:
        """Report finished guests of a batch that is still running."""

    @call(timeout=Timeout.SHORT, repeatable=True)
    def may_proceed(self, host: HostName, asked: tuple[Permission, ...]) -> tuple[Permission, ...]:
        """Return which of these epochs are still the newest, before an irreversible step. One indexed read."""

    @call(since="1.2", timeout=Timeout.SHORT)
    def report_progress(self, host: HostName, reports: tuple[ProgressReport, ...]) -> None:
        """Report the progress of live migrations of the host's guests; other hosts' guests are ignored."""

    @call(repeatable=True)
    def expected_guests(self, host: HostName, have: tuple[str, ...]) -> tuple[ExpectedGuest, ...]:
        """Return the guests that must be on the host, and which of its other uuids have an explicit record of
        deletion."""

    @call(since="1.8")
    def report_strangers(self, host: HostName, report: OrphanReport) -> tuple[OrphanRemoval, ...]:
        """Report all guests of the host that are not in its ``expected_guests``. Returns the guests
        without any record that an operator wants removed. Idempotent."""

    @call()
    def debt_paid(self, host: HostName, debt_id: int) -> None:
        """Report a completed cleanup; its claim is released."""

    @call(since="1.8")
    def volumes_given_up(self, host: HostName, server_uuid: str, volume_ids: tuple[str, ...]) -> None:
        """Report volumes that a guest released after their detach had failed. Other hosts' servers are ignored. While
        an operation works on the server, the whole report is ignored: repeat it."""

    @call(since="1.8")
    def report_volume_usage(self, host: HostName, counts: tuple[VolumeCounts, ...]) -> None:
        """Report guests' volume counters since their start. Other hosts' guests are ignored."""

    @call(repeatable=True)
    def guest_facts(self, host: HostName, query: GuestQuery) -> GuestFacts:
        """Return a guest's data for the metadata service. Raises NotFound if no live server has that address."""

    @call(sensitive=True)
    def set_guest_password(self, host: HostName, password: GuestPassword) -> None:
        """Store the encrypted password that a guest posted. Raises Conflict if one is stored already."""

    @call(since="1.3", repeatable=True)
    def host_firewall(self, host: HostName) -> HostFirewall:
        """Return all committed filter rules for the host's guests, for nova-compute."""

    @call(since="1.5", timeout=Timeout.SHORT, repeatable=True)
    def guest_ranges(self, host: HostName) -> tuple[str, ...]:
        """Return the network ranges and floating addresses of all guests of the cell, merged into as few ranges as
        possible. Empty with Neutron."""

    @call(repeatable=True)
    def networks_on_host(self, host: HostName) -> tuple[NetworkOnHost, ...]:
        """Return every network that the host serves, with the addresses allocated in it, for nova-network."""

    @call(repeatable=True)
    def network_for_guest(self, host: HostName, network_uuid: str) -> NetworkOnHost:
        """Return the current state of one network that the host serves."""

    @call()
    def report_lease(self, host: HostName, lease: LeaseChange) -> None:
        """Report an address that dnsmasq leased or released. Idempotent."""
