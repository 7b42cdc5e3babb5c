"""A host's system as data: executed programs, created devices and addresses."""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import NamedTuple

from nova import errors
from nova.privileged import links, taps
from nova.privileged.runner import Completed


class Ran(NamedTuple):
    argv: tuple[str, ...]
    stdin: str | None
    environment: dict[str, str]


class FakeRunner:
    """Runner that records programs; ``answers``: program's name -> its output, or an exception to raise."""

    def __init__(self, answers: Mapping[str, str | Exception] | None = None) -> None:
        self.answers: dict[str, str | Exception] = dict(answers or {})
        self.ran: list[Ran] = []

    def run(self, argv: Sequence[str], *, stdin: str | None = None, ok: Collection[int] = (0,),
            environment: Mapping[str, str] | None = None) -> Completed:
        self.ran.append(Ran(tuple(argv), stdin, dict(environment or {})))
        answer = self.answers.get(argv[0], "")
        if isinstance(answer, Exception):
            raise answer
        return Completed(0, answer)

    def named(self, program: str) -> list[Ran]:
        return [ran for ran in self.ran if ran.argv[0] == program]

    @contextlib.contextmanager
    def recording(self) -> Iterator[list[Ran]]:
        """Collect the programs that run inside the block."""
        before = len(self.ran)
        seen: list[Ran] = []
        yield seen
        seen.extend(self.ran[before:])


class FakeLinks:
    """The functions of ``nova.privileged.links`` that a network host uses, over a dictionary of devices."""

    def __init__(self, devices: Sequence[str] = ("lo",)) -> None:
        self.devices: dict[str, list[links.Address]] = {name: [] for name in devices}
        self.routing: dict[str, list[links.LinkRoute]] = {}
        self.masters: dict[str, str] = {}
        self.vlans: dict[str, links.Vlan] = {}
        self.macs: dict[str, str] = {}
        self.ipv6: dict[str, bool] = {}  # devices with an explicit setting
        self.log: list[tuple[object, ...]] = []

    def exists(self, device: str) -> bool:
        return device in self.devices

    def ensure_bridge(self, name: str, interface: str | None = None, mtu: int | None = None,
                      mac: str | None = None) -> None:
        if name not in self.devices:
            self.devices[name] = []
            self.macs[name] = mac or "?"
            self.ipv6[name] = False
            self.log.append(("bridge", name))
        if interface:
            self.enslave(name, interface)

    def set_ipv6(self, device: str, on: bool) -> None:
        if device not in self.devices:
            raise errors.host.Link(device=device, reason="there is no such device")
        self.ipv6[device] = on

    def ensure_vlan(self, vlan: links.Vlan) -> None:
        if vlan.parent not in self.devices:
            raise errors.host.Link(device=vlan.parent, reason="there is no such device")
        if vlan.name not in self.devices:
            self.devices[vlan.name] = []
            self.log.append(("vlan", vlan.name))
        self.vlans[vlan.name] = vlan

    def ensure_tap(self, tap: taps.Tap) -> None:
        if tap.name not in self.devices:
            self.devices[tap.name] = []
            self.log.append(("tap", tap.name))
        if tap.bridge:
            self.masters[tap.name] = tap.bridge

    def ensure_up(self, device: str, mac: str | None = None, mtu: int | None = None) -> None:
        self.log.append(("up", device, mac, mtu))

    def ports(self, bridge: str) -> tuple[str, ...]:
        return tuple(sorted(port for port, master in self.masters.items() if master == bridge))

    def delete(self, device: str) -> None:
        self.devices.pop(device, None)
        self.routing.pop(device, None)
        self.vlans.pop(device, None)
        self.masters = {port: master for port, master in self.masters.items() if device not in (port, master)}
        self.log.append(("delete", device))

    def enslave(self, bridge: str, interface: str) -> None:
        if interface not in self.devices:
            raise errors.host.Link(device=interface, reason="there is no such device")
        if self.masters.get(interface) != bridge:
            self.masters[interface] = bridge
            self.log.append(("enslave", bridge, interface))
        self.devices[bridge] += self.devices[interface]
        self.devices[interface] = []

    def addresses(self, device: str) -> tuple[links.Address, ...]:
        return tuple(address for address in self.devices[device] if ":" not in address.address)

    def addresses_v6(self, device: str) -> tuple[links.Address, ...]:
        return tuple(address for address in self.devices[device] if ":" in address.address)

    def ensure_address(self, device: str, address: links.Address) -> None:
        if all(address.address != present.address for present in self.devices[device]):
            self.devices[device].append(address)
            self.log.append(("add", device, address.address))

    def delete_address(self, device: str, address: links.Address) -> None:
        self.devices[device] = [present for present in self.devices[device] if present.address != address.address]
        self.log.append(("remove", device, address.address))
        if not self.devices[device]:
            self.routing.pop(device, None)  # like the kernel

    def routes(self, device: str) -> tuple[links.LinkRoute, ...]:
        return tuple(self.routing.get(device, ()))

    def ensure_route(self, device: str, route: links.LinkRoute) -> None:
        if route not in self.routing.setdefault(device, []):
            self.routing[device].append(route)
            self.log.append(("route", device, route.destination))
