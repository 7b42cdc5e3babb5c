"""Daemons other than the conductor, which execute calls and record them."""

from __future__ import annotations

from nova import errors
from nova.model.host.hosts import HostStates
from nova.model.network.networks import NetworkOnHost
from nova.model.scheduling.decisions import HostChoice, PlacementRequest, Selection
from nova.rpc.contracts.network import NetworkRPC
from nova.rpc.contracts.scheduler import SchedulerRPC
from tests.fakes.contract import ContractFake


class FakeScheduler(ContractFake, contract=SchedulerRPC):
    """Scheduler that proposes all hosts, in their order, for every server."""

    def __init__(self) -> None:
        super().__init__()
        self.choices: list[HostChoice] = []

    def select_hosts(self, request: PlacementRequest) -> tuple[Selection, ...]:
        chosen = tuple(one for one in self.choices if one.host not in request.exclude)
        return tuple(Selection(server_uuid=uuid, hosts=chosen) for uuid in request.server_uuids)

    @property
    def requests(self) -> list[PlacementRequest]:
        return self.asked("select_hosts")

    @property
    def received(self) -> list[HostStates]:
        return self.asked("update_hosts")


class FakeNetworkHost(ContractFake, contract=NetworkRPC):
    def __init__(self) -> None:
        super().__init__()
        self.devices: set[str] | None = None  # None: all devices are present
        self.given(ping=lambda host: host)

    def check_floating_interface(self, host: str, interface: str | None) -> None:
        if self.devices is not None and (interface or "eth0") not in self.devices:
            raise errors.Invalid(f"Interface {interface} not found.")

    @property
    def served(self) -> list[NetworkOnHost]:
        return [one for _host, networks in self.asked("serve_networks") for one in networks]
