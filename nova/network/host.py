"""What this host has of its networks: bridge, addresses, packet filter, dnsmasq and leases, brought to a state."""

from __future__ import annotations

import ipaddress
import logging
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple, Protocol

from nova.errors import Conflict
from nova.model.networks import Network, NetworkOnHost
from nova.network import firewall, manager
from nova.network.dnsmasq import Dnsmasq, Lease
from nova.network.dnsmasq import Paths as DnsmasqPaths
from nova.network.gateway import Gateway, Links
from nova.network.leases import LeaseBook
from nova.network.options import NetworkOptions
from nova.privileged.files import enable_forwarding
from nova.privileged.iptables import PacketFilter, Table
from nova.privileged.runner import CommandFailed, Runner

LOG = logging.getLogger(__name__)


class BridgeTaken(Conflict):
    code = "network.bridge_taken"
    message = "Network {label}: the bridge {bridge} of this host already serves network {other}"


class Machine(NamedTuple):
    """The parts of a host that need root."""

    links: Links
    runner: Runner
    packet_filter: PacketFilter
    enable_forwarding: Callable[[], None] = enable_forwarding


class HostSide(Protocol):
    """What the service brings to a state; both calls repeat harmlessly."""

    def prepare(self, networks: Sequence[Network], again: bool = False) -> None:
        """What is common to all networks: firewall, forwarding, metadata address. ``again``: look at the kernel even
        when nothing changed here."""

    def serve(self, wanted: NetworkOnHost, networks: Sequence[Network]) -> None:
        """One of the ``networks`` this host serves."""

    def keep_only(self, networks: Sequence[Network]) -> None:
        """Take away what is here of networks that are not among these."""


class NoHost:
    """``fake_network``: networks in the records alone."""

    def prepare(self, networks: Sequence[Network], again: bool = False) -> None: ...

    def serve(self, wanted: NetworkOnHost, networks: Sequence[Network]) -> None: ...

    def keep_only(self, networks: Sequence[Network]) -> None: ...


class NetworkHost:
    """The real one."""

    def __init__(self, options: NetworkOptions, machine: Machine, book: LeaseBook) -> None:
        self._options, self._machine, self._book = options, machine, book
        self._gateway = Gateway(options, machine.links, machine.runner)
        self._manager = manager.load(options.network_manager)(options, machine.links, self._gateway)
        self.dnsmasq = Dnsmasq(options, machine.runner)
        self._applied: tuple[Table, ...] | None = None

    def prepare(self, networks: Sequence[Network], again: bool = False) -> None:
        wanted = firewall.tables(networks, self._options)
        if again or wanted != self._applied:
            self._machine.enable_forwarding()
            self._gateway.ensure_metadata_address()
            self._machine.packet_filter.apply(wanted)
            self._applied = wanted

    def serve(self, wanted: NetworkOnHost, networks: Sequence[Network]) -> None:
        network = wanted.network
        if not network.bridge or not network.cidr:
            LOG.warning("Network %s has no bridge or no IPv4 range: nothing to serve", network.label)
            return
        _check_bridge(network, networks)
        self._manager.ensure_link(network)
        if not network.enable_dhcp:
            self.dnsmasq.stop(network.bridge)
            return
        dropped = self.dnsmasq.serve(network, wanted.addresses)
        self._take_back(wanted, dropped)

    def keep_only(self, networks: Sequence[Network]) -> None:
        for bridge in self.dnsmasq.bridges() - {network.bridge for network in networks}:
            LOG.info("No network on %s any more: its DHCP server ends", bridge)
            self._unserve(bridge)
        self._book.drop(self._book.networks() - {network.uuid for network in networks})

    def _take_back(self, wanted: NetworkOnHost, dropped: frozenset[Lease]) -> None:
        """Leases of addresses that are their owners' no more; else dnsmasq would refuse them to the next owner."""
        mine = {Lease(host.mac.lower(), host.address) for host in wanted.addresses}
        held = {Lease(lease.mac.lower(), lease.address) for lease in self._book.held(wanted.network.uuid)}
        stale = (dropped | held) - mine
        if not stale or not self._options.force_dhcp_release:
            return
        for lease in sorted(stale):
            try:
                self._machine.runner.run(["dhcp_release", wanted.network.bridge or "", lease.address, lease.mac])
            except CommandFailed as error:
                LOG.warning("The lease of %s waits for its end: %s", lease.address, error)
        self._book.forget(wanted.network.uuid, stale)

    def _unserve(self, bridge: str) -> None:
        """End DHCP, and take our address away, which would else draw the range's packets to an empty bridge."""
        opts = DnsmasqPaths.of(self._options.networks_path, bridge).opts
        router = _router(opts.read_text()) if opts.exists() else None
        if router is not None and self._machine.links.exists(bridge):
            for address in self._machine.links.addresses(bridge):
                if address.address == router:
                    self._machine.links.delete_address(bridge, address)
        self.dnsmasq.stop(bridge)  # last: its files are how a killed run is found again


def _check_bridge(network: Network, networks: Iterable[Network]) -> None:
    """One DHCP server a bridge: of two networks on one, the older is served."""
    others = [other for other in networks if other.bridge == network.bridge and other.uuid != network.uuid
              and other.enable_dhcp and (other.id, other.uuid) < (network.id, network.uuid)]
    if others and network.enable_dhcp:
        raise BridgeTaken(label=network.label, bridge=network.bridge, other=others[0].label)


def _router(opts: str) -> str | None:
    """The router that an options file of ours names."""
    for line in opts.splitlines():
        code, _comma, value = line.partition(",")
        if code == "3" and value:
            return str(ipaddress.ip_address(value))
    return None
