"""Neutron on a walk: ports of nova and of users, a service that is away or whose answers are lost, and the invariants
of its ports when the cloud is idle."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

from nova.model.base import Scope
from nova.model.network.networks import RequestedNetwork
from nova.model.network.security_groups import GroupMembership
from tests.fakes.neutron import FakeNeutron
from tests.fakes.small_cloud import DEMO
from tests.fakes.walking_networks import WalkingNetworks

PROJECT = str(DEMO.project_id)
SCOPE = Scope(project_id=PROJECT)
PORTS = 6
TROUBLES = (("", "", "refused"), ("", "", 503), ("POST", "ports", "lost"), ("PUT", "ports", "lost"),
            ("DELETE", "ports", "lost"), ("POST", "bindings", "lost"), ("PUT", "activate", "lost"),
            ("POST", "ports", "timeout"), ("GET", "ports", "refused"), ("DELETE", "ports", 503),
            ("PUT", "ports", 503), ("PUT", "ports", 409), ("POST", "ports", 500))


class NeutronNetworks(WalkingNetworks):
    weights = {"attach_interface": 3, "detach_interface": 2, "port": 1, "join": 2, "part": 1}
    faults = ("network", "network")
    meanwhile = ("attach_interface", "detach_interface", "join", "part")
    addresses = staticmethod(lambda cloud, live: iter(()))  # nova has no address rows

    def __init__(self, cloud: Any, rng: random.Random) -> None:
        super().__init__(cloud, rng)
        self.neutron: FakeNeutron = cloud.neutron
        self.nets = [cloud.net, self.neutron.add_network("second", ("10.2.0.0/24",))]
        for name in ("web", "db"):
            self.neutron.add_group(name)
        self.theirs: list[str] = []
        self.actions = {"attach_interface": self._attach, "detach_interface": self.detach, "port": self._port,
                        "join": lambda uuid: self._member(uuid, True), "part": lambda uuid: self._member(uuid, False)}

    # -- actions

    def requested(self) -> dict[str, Any]:
        fields: dict[str, Any] = {"networks": tuple(self._request() for _ in range(self.rng.randint(1, 3)))}
        if self.rng.random() < 0.4:
            fields["security_groups"] = tuple(self.rng.sample(("default", "web", "db"), 2))
        return fields

    def _request(self) -> RequestedNetwork:
        if self.theirs and self.rng.random() < 0.3:
            return RequestedNetwork(port_id=self.rng.choice(self.theirs))
        ip = f"10.1.0.{self.rng.randint(2, 40)}" if self.rng.random() < 0.1 else None
        return RequestedNetwork(network_id=self.nets[0] if ip else self.rng.choice(self.nets), fixed_ip=ip)

    def _attach(self, uuid: str) -> None:
        self.attach(uuid, self._request())

    def _port(self, uuid: str) -> None:
        if len(self.theirs) < PORTS:
            self.theirs.append(self.neutron.add_port(self.rng.choice(self.nets)))

    def _member(self, uuid: str, member: bool) -> None:
        group = self.rng.choice(("default", "web", "db"))
        self.cloud.control.change_group_membership(GroupMembership(server_uuid=uuid, group=group, member=member))

    # -- failures

    @property
    def troubled(self) -> bool:  # type: ignore[override]
        return any(one.left for one in self.neutron.troubles)

    def arm(self, kind: str) -> str:
        method, path, how = self.rng.choice(TROUBLES)
        times = self.rng.choice((1, 1, 2, 5, 10**6))
        self.neutron.trouble(method, path, how, times)
        return f"Neutron: {method or 'anything'} {path} {how}, {times} times"

    def revive(self) -> None:
        self.neutron.troubles.clear()

    def rest(self) -> None:
        for part in self.cloud.parts:
            healer = part.deps.networking.healer
            healer.turn()  # fewer servers than a batch: all of them
            healer.turn()

    # -- invariants

    def wrong(self) -> Iterator[str]:
        live = self.live()
        yield from self._ports({row.uuid: row for row in live})
        yield from self._theirs()
        for row in live:
            yield from self._interfaces(row)
        yield from self.plugged(live)

    def left(self) -> Iterator[str]:
        yield from (f"port {port}" for port in self.neutron.ports.values()
                    if port["device_id"] or port["id"] not in self.theirs)

    def _ports(self, live: dict[str, Any]) -> Iterator[str]:
        for port in self.neutron.ports.values():
            name = f"port {port['id']} of {port['device_id']}"
            if not port["device_id"]:
                if port["id"] not in self.theirs:
                    yield f"{name} was made, and is nobody's"
                continue
            row = live.get(port["device_id"])
            if row is None:
                yield f"{name}, which is gone"
                continue
            if port["id"] not in {one.id for one in row.interfaces or ()}:
                yield f"{name} ({row.vm_state}) is not in its row"
            yield from self._bound(name, port, row)

    def _bound(self, name: str, port: dict[str, Any], row: Any) -> Iterator[str]:
        """Check that a port is bound only to the server's host."""
        bindings = self.neutron.hosts_of(port["id"])
        should = {row.host: "ACTIVE"} if row.host else {}
        if bindings != should and row.vm_state != "error":
            yield f"{name} ({row.vm_state}) is bound to {bindings}, should be to {should}"
        if (port["binding:host_id"] or None) != row.host and row.vm_state != "error":
            yield f"{name} ({row.vm_state}) says {port['binding:host_id']}, its server is on {row.host}"

    def _theirs(self) -> Iterator[str]:
        for key in self.theirs:
            port = self.neutron.ports.get(key)
            if port is None:
                yield f"the user's port {key} is gone"
            elif not port["device_id"] and (port["binding:host_id"] or port["device_owner"] or self.neutron.hosts_of(
                    key) or port["dns_name"]):
                yield f"the user's port {key} is free, and is {port}, bound to {self.neutron.hosts_of(key)}"

    def _interfaces(self, row: Any) -> Iterator[str]:
        """Check that the server's row matches Neutron."""
        ports = {port["id"]: port for port in self.neutron.of(row.uuid)}
        shown = {one.id: one for one in row.interfaces or ()}
        if len(shown) != len(row.interfaces or ()):
            yield f"{row.uuid} has an interface twice"
        for key, one in shown.items():
            port = ports.get(key)
            if port is None:
                if row.vm_state != "error":
                    yield f"interface {key} of {row.uuid} ({row.vm_state}) has no port"
                continue
            if one.given != (key in self.theirs):
                yield f"interface {key} of {row.uuid} is the user's: {one.given}"
            if {address.address for address in one.addresses} != {each["ip_address"] for each in port["fixed_ips"]}:
                yield f"interface {key} of {row.uuid} has {one.addresses}, its port {port['fixed_ips']}"
