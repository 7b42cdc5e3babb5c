"""The addresses a network host has on its devices: the gateway's first on the bridge, the metadata address on lo."""

from __future__ import annotations

import contextlib
import ipaddress
import logging
from pathlib import Path
from typing import Protocol

import msgspec

from nova import decoding, errors
from nova.model.network.forbidden_ranges import METADATA_ADDRESS
from nova.model.network.networks import Network
from nova.network.options import NetworkHostOptions
from nova.privileged.announcements import announce
from nova.privileged.files import write_whole
from nova.privileged.links import SCOPES, Address, LinkRoute, Vlan
from nova.privileged.runner import CommandRunner
from nova.privileged.taps import Tap

LOG = logging.getLogger(__name__)


class HostLinks(Protocol):
    """What we use of :mod:`nova.privileged.links`."""

    def exists(self, device: str) -> bool:
        """Whether there is a device of that name."""
    def ensure_bridge(self, name: str, interface: str | None = None, mtu: int | None = None,
                      mac: str | None = None) -> None:
        """A bridge that is up, with ``interface`` as its port. host.Link."""
    def set_ipv6(self, device: str, on: bool) -> None:
        """Whether the host itself speaks IPv6 on the device."""
    def ensure_vlan(self, vlan: Vlan) -> None:
        """The VLAN's device, up, on its parent. host.Link."""
    def ensure_tap(self, tap: Tap) -> None:
        """A tap that outlives us, up, and a port of its bridge. host.Link."""
    def ensure_up(self, device: str, mac: str | None = None, mtu: int | None = None) -> None:
        """A device that is there, up, with this MAC and MTU; None: as they are. host.Link."""
    def ports(self, bridge: str) -> tuple[str, ...]:
        """Names of a bridge's ports; () when there is no such bridge."""
    def delete(self, device: str) -> None:
        """Remove a device. Nothing when there is none."""
    def enslave(self, bridge: str, interface: str) -> None:
        """Make ``interface`` a port of ``bridge``; its IPv4 addresses and routes go to the bridge. host.Link."""
    def addresses(self, device: str) -> tuple[Address, ...]:
        """IPv4 addresses in the kernel's order. host.Link: there is no such device."""
    def addresses_v6(self, device: str) -> tuple[Address, ...]:
        """The same of IPv6."""
    def ensure_address(self, device: str, address: Address) -> None:
        """Nothing when the device has it. host.Link: there is no such device."""
    def delete_address(self, device: str, address: Address) -> None:
        """Nothing when the device has it not. host.Link: there is no such device."""
    def routes(self, device: str) -> tuple[LinkRoute, ...]:
        """IPv4 routes over the device that the kernel did not make by itself. host.Link."""
    def ensure_route(self, device: str, route: LinkRoute) -> None:
        """Make (or turn) a route over the device. host.Link."""


class Moving(msgspec.Struct, frozen=True):
    """What stood before our address on a bridge, while it is put behind it."""

    addresses: tuple[Address, ...] = ()
    routes: tuple[LinkRoute, ...] = ()


class Gateway:
    """Puts addresses where they belong; each call repeats harmlessly and ends what a killed forerunner began."""

    def __init__(self, options: NetworkHostOptions, links: HostLinks, runner: CommandRunner) -> None:
        self._options, self._links, self._runner = options, links, runner

    def ensure_metadata_address(self) -> None:
        """The metadata service's address on lo, of this host alone (169.254.169.254/32, scope link). host.Link."""
        self._links.ensure_address("lo", Address(METADATA_ADDRESS, 32, None, SCOPES["link"]))

    def ensure(self, network: Network, device: str | None = None) -> None:
        """Make the DHCP server's address the first on the bridge (or the network's other ``device``): guests' packets
        for outside come to it."""
        bridge, wanted = device or network.bridge or "", gateway_address(network)
        self._finish_move(bridge)
        present = self._links.addresses(bridge)
        if present and present[0][:2] == wanted[:2]:
            return
        if present:
            self._put_first(bridge, wanted, present)
        else:
            self._links.ensure_address(bridge, wanted)
        self._announce(bridge, wanted)

    def _put_first(self, bridge: str, wanted: Address, present: tuple[Address, ...]) -> None:
        """The kernel's order is that of arrival, so others must leave and come again, with their routes.

        They are written down before they leave: a process killed in between finds them at its next start.
        """
        others = tuple(address for address in present if address.address != wanted.address)
        moving = Moving(others, self._links.routes(bridge))
        write_whole(self._journal(bridge), msgspec.json.encode(moving).decode(), 0o600)
        for address in present:
            self._links.delete_address(bridge, address)
        self._links.ensure_address(bridge, wanted)
        self._finish_move(bridge)

    def _finish_move(self, bridge: str) -> None:
        journal = self._journal(bridge)
        try:
            moving = decoding.from_json(journal.read_bytes(), Moving)
        except FileNotFoundError:
            return
        except msgspec.DecodeError:
            LOG.error("%s cannot be read: it named addresses of %s to put back", journal, bridge)
            return
        for address in moving.addresses:
            self._links.ensure_address(bridge, address)
        for route in moving.routes:
            self._links.ensure_route(bridge, route)
        journal.unlink(missing_ok=True)

    def _journal(self, bridge: str) -> Path:
        return self._options.networks_path / f"nova-{bridge}.moving"

    def _announce(self, device: str, address: Address) -> None:
        if self._options.send_arp_for_ha:
            with contextlib.suppress(errors.host.CommandFailed):  # it hastens what ARP finds out by itself
                announce(self._runner, device, address.address, self._options.send_arp_for_ha_count)


def gateway_address(network: Network) -> Address:
    """``dhcp_server`` with the network's prefix and broadcast address."""
    subnet = ipaddress.IPv4Network(network.cidr or "", strict=False)
    return Address(network.dhcp_server or network.gateway or "", subnet.prefixlen, str(subnet.broadcast_address))
