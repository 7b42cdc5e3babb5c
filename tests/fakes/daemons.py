"""Daemons beside the conductor that do as told and keep what they were told."""

from __future__ import annotations

from nova import context, errors
from nova.model.hosts import HostStates
from nova.model.networks import NetworkOnHost
from nova.model.scheduling import HostChoice, PlacementRequest, Selection


class FakeScheduler:
    """Proposes all hosts, in their order, for every server."""

    def __init__(self) -> None:
        self.choices: list[HostChoice] = []
        self.requests: list[PlacementRequest] = []
        self.told: list[HostStates] = []
        self.contexts: list[context.RequestContext] = []

    def select_hosts(self, request: PlacementRequest) -> tuple[Selection, ...]:
        self.contexts.append(context.current())
        self.requests.append(request)
        chosen = tuple(one for one in self.choices if one.host not in request.exclude)
        return tuple(Selection(server_uuid=uuid, hosts=chosen) for uuid in request.server_uuids)

    def update_hosts(self, states: HostStates) -> None:
        self.told.append(states)


class FakeNetworkHost:
    def __init__(self) -> None:
        self.served: list[NetworkOnHost] = []
        self.devices: set[str] | None = None  # None: every device is there
        self.refusal: errors.NovaError | None = None  # of the next orders
        self.looked = 0  # how often it asked for all of its networks since it was told to

    def serve_networks(self, host: str, networks: tuple[NetworkOnHost, ...]) -> None:
        self.served += networks
        if self.refusal is not None:
            raise self.refusal

    def refresh_networks(self, host: str) -> None:
        self.looked += 1

    def check_floating_interface(self, host: str, interface: str | None) -> None:
        if self.devices is not None and (interface or "eth0") not in self.devices:
            raise errors.Invalid(f"Interface {interface} not found.")

    def ping(self, host: str) -> str:
        return host
