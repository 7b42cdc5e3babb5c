"""Addresses of a network host on its devices: the gateway's address first on the bridge, the metadata address on lo."""

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
    """The functions used from :mod:`nova.privileged.links`."""

    def exists(self, device: str) -> bool:
        """Return whether a device of that name exists."""
    def ensure_bridge(self, name: str, interface: str | None = None, mtu: int | None = None,
                      mac: str | None = None) -> None:
        """Create a bridge that is up, with ``interface`` as its port. Raises host.Link."""
    def set_ipv6(self, device: str, on: bool) -> None:
        """Enable or disable the host's own IPv6 on the device."""
    def ensure_vlan(self, vlan: Vlan) -> None:
        """Create the VLAN's device on its parent and set it up. Raises host.Link."""
    def ensure_tap(self, tap: Tap) -> None:
        """Create a persistent tap that is up and a port of its bridge. Raises host.Link."""
    def ensure_up(self, device: str, mac: str | None = None, mtu: int | None = None) -> None:
        """Set an existing device up, with this MAC and MTU; None leaves them. Raises host.Link."""
    def ports(self, bridge: str) -> tuple[str, ...]:
        """Return the names of a bridge's ports; () if there is no such bridge."""
    def delete(self, device: str) -> None:
        """Remove a device; no error if it is missing."""
    def enslave(self, bridge: str, interface: str) -> None:
        """Make ``interface`` a port of ``bridge``; its IPv4 addresses and routes move to the bridge. Raises
        host.Link."""
    def addresses(self, device: str) -> tuple[Address, ...]:
        """Return the IPv4 addresses in the kernel's order. Raises host.Link if there is no such device."""
    def addresses_v6(self, device: str) -> tuple[Address, ...]:
        """Return the IPv6 addresses, likewise."""
    def ensure_address(self, device: str, address: Address) -> None:
        """Add an address unless the device has it. Raises host.Link if there is no such device."""
    def delete_address(self, device: str, address: Address) -> None:
        """Remove an address if the device has it. Raises host.Link if there is no such device."""
    def routes(self, device: str) -> tuple[LinkRoute, ...]:
        """Return the IPv4 routes over the device that the kernel did not add automatically. Raises host.Link."""
    def ensure_route(self, device: str, route: LinkRoute) -> None:
        """Add or change a route over the device. Raises host.Link."""


class Moving(msgspec.Struct, frozen=True):
    """Addresses and routes that preceded nova's address on a bridge, while they are moved behind it."""

    addresses: tuple[Address, ...] = ()
    routes: tuple[LinkRoute, ...] = ()


class Gateway:
    """Addresses of this host. Each call repeats harmlessly and completes the work of a killed process."""

    def __init__(self, options: NetworkHostOptions, links: HostLinks, runner: CommandRunner) -> None:
        self._options, self._links, self._runner = options, links, runner

    def ensure_metadata_address(self) -> None:
        """Add the metadata service's address to lo, for this host alone (169.254.169.254/32, scope link). Raises
        host.Link."""
        self._links.ensure_address("lo", Address(METADATA_ADDRESS, 32, None, SCOPES["link"]))

    def ensure(self, network: Network, device: str | None = None) -> None:
        """Make the DHCP server's address the first on the bridge (or the network's other ``device``): guests send their
        outbound packets to it."""
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
        """Put the address first. The kernel orders addresses by arrival, so the others are removed and added again,
        with their routes.

        They are recorded before the removal: after a crash in between, the next start restores them.
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
            LOG.error("cannot read %s; addresses of %s in it are not restored", journal, bridge)
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
            with contextlib.suppress(errors.host.CommandFailed):  # only speeds up ARP
                announce(self._runner, device, address.address, self._options.send_arp_for_ha_count)


def gateway_address(network: Network) -> Address:
    """Return ``dhcp_server`` with the network's prefix and broadcast address."""
    subnet = ipaddress.IPv4Network(network.cidr or "", strict=False)
    return Address(network.dhcp_server or network.gateway or "", subnet.prefixlen, str(subnet.broadcast_address))
