"""The conductor's API for hosts: ConductorHostRPC with answers that a test sets; it keeps the reports of hosts."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from nova.model.guest.orders import ExpectedGuest, Outcome, Permission, PowerReport
from nova.model.host.services import Alive, PendingCleanup, Registered, Registration
from nova.model.network.networks import LeaseChange, NetworkOnHost
from nova.model.network.security_groups import HostFirewall
from nova.model.server.migrations import ProgressReport
from nova.rpc.contracts.conductor_host import ConductorHostRPC
from tests.fakes.contract import ContractFake


class FakeConductorHost(ContractFake, contract=ConductorHostRPC):
    """Conductor for hosts. ``overtaken``: servers whose permission is refused. ``networks``: networks of the host."""

    def __init__(self, *networks: NetworkOnHost) -> None:
        super().__init__()
        self.overtaken: set[str] = set()
        self.cleanups: tuple[PendingCleanup, ...] = ()
        self.expected: tuple[ExpectedGuest, ...] = ()
        self.networks = networks
        self.given(heartbeat=Alive(), host_firewall=lambda host: HostFirewall(host=host),
                   guest_ranges=(), report_strangers=(), volumes_given_up=None,
                   report_volume_usage=None, report_hypervisor_down=None)

    # -- answers

    def register(self, host: str, registration: Registration) -> Registered:
        return Registered(service_id=1, cleanups=self.cleanups)

    def may_proceed(self, host: str, asked: Iterable[Permission]) -> tuple[Permission, ...]:
        return tuple(Permission(server_uuid=each.server_uuid, epoch=each.epoch,
                                granted=each.server_uuid not in self.overtaken) for each in asked)

    def expected_guests(self, host: str, have: tuple[str, ...]) -> tuple[ExpectedGuest, ...]:
        return tuple(guest for guest in self.expected if not guest.gone or guest.server_uuid in have)

    def networks_on_host(self, host: str) -> tuple[NetworkOnHost, ...]:
        return tuple(self.networks)

    # -- received reports

    def _said(self, name: str) -> list[Any]:
        """Return the arguments of answered calls of this name, without the hosts' names."""
        return [call.said[-1] for call in [*self.done] if call.name == name]

    @property
    def registrations(self) -> list[Registration]:
        return self._said("register")

    @property
    def inventories(self) -> list[Any]:
        return self._said("report_inventory")

    @property
    def reports(self) -> list[PowerReport]:
        return self._said("report_power")

    @property
    def outcomes(self) -> list[tuple[tuple[int, ...], tuple[Outcome, ...]]]:
        """Return (operations, outcomes) of each report."""
        return [call.said[1:] for call in [*self.done] if call.name == "report_outcomes"]

    @property
    def permissions(self) -> list[tuple[Permission, ...]]:
        """Return the permissions that each call asked for."""
        return self._said("may_proceed")

    @property
    def have(self) -> tuple[str, ...]:
        """Return the guests in the host's last report."""
        return self._said("expected_guests")[-1]  # type: ignore[no-any-return]

    @property
    def paid(self) -> list[int]:
        return self._said("debt_paid")

    @property
    def progress(self) -> list[ProgressReport]:
        return [report for reports in self._said("report_progress") for report in reports]

    @property
    def leases(self) -> list[LeaseChange]:
        return self._said("report_lease")
