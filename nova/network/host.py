"""Reconciliation of this host's networks: bridges, addresses, packet filters, dnsmasq, radvd and leases."""

from __future__ import annotations

import ipaddress
import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple, Protocol

from nova import errors, failures, faults
from nova.model.network.forbidden_ranges import Forbidden
from nova.model.network.networks import Network, NetworkOnHost
from nova.network import drivers, firewall, isolation, manager
from nova.network.device_records import NetworkDeviceRecords, NetworkDevices
from nova.network.dnsmasq import Dnsmasq, Lease
from nova.network.dnsmasq import Paths as DnsmasqPaths
from nova.network.floating import FloatingOnDevices
from nova.network.gateway import Gateway, HostLinks, gateway_address
from nova.network.ipv6 import IPv6
from nova.network.ipv6 import addresses as addresses_v6
from nova.network.leases import LeaseBook
from nova.network.local_network import LocalNetwork, here, idle
from nova.network.options import NetworkHostOptions
from nova.network.translation import translated
from nova.privileged.announcements import release_lease
from nova.privileged.files import enable_forwarding, enable_forwarding_v6
from nova.privileged.iptables import PacketFilter, Table
from nova.privileged.links import Address
from nova.privileged.runner import CommandRunner

LOG = logging.getLogger(__name__)
FAULTS = "network"  # fault points are named network:STEP:before and :after


class Filters(NamedTuple):
    """The kernel's packet filters: for IPv4, for IPv6, and for frames on bridges."""

    ipv4: PacketFilter
    ipv6: PacketFilter
    frames: PacketFilter


def nothing_forbidden(own: Iterable[str]) -> Forbidden:
    """Return no forbidden ranges: guests may reach all addresses."""
    return Forbidden()


class Machine(NamedTuple):
    """Parts of a host that need root. ``forbidden``: returns the ranges that guests of the given ranges may not reach
    now."""

    links: HostLinks
    runner: CommandRunner
    filters: Filters
    enable_forwarding: Callable[[], None] = enable_forwarding
    enable_forwarding_v6: Callable[[], None] = enable_forwarding_v6
    forbidden: Callable[[Iterable[str]], Forbidden] = nothing_forbidden


class HostSide(Protocol):
    """Interface to the host for the service. ``prepare`` and ``serve`` repeat harmlessly."""

    def prepare(self, orders: Sequence[NetworkOnHost], again: bool = False) -> None:
        """Set up the common parts of all networks: firewall, forwarding, metadata address. ``again``: check the kernel
        even if the wanted state is unchanged."""

    def serve(self, wanted: NetworkOnHost, orders: Sequence[NetworkOnHost]) -> None:
        """Set up one of the networks that this host serves, which are ``orders``."""

    def keep_only(self, orders: Sequence[NetworkOnHost]) -> None:
        """Remove the parts of networks that are not among these."""

    def check_floating(self, interface: str | None) -> None:
        """Check the device for a floating address (None: ``public_interface``). Raises network.NoFloatingInterface."""


class NoHostSide:
    """Host side for ``fake_network``: networks exist in the records only."""

    def prepare(self, orders: Sequence[NetworkOnHost], again: bool = False) -> None: ...

    def serve(self, wanted: NetworkOnHost, orders: Sequence[NetworkOnHost]) -> None: ...

    def keep_only(self, orders: Sequence[NetworkOnHost]) -> None: ...

    def check_floating(self, interface: str | None) -> None: ...


class NetworkHost:
    """Host side that configures the real host."""

    def __init__(self, options: NetworkHostOptions, machine: Machine, book: LeaseBook) -> None:
        self._options, self._machine, self._book = options, machine, book
        underlay = manager.load(options.network_manager)
        driver = drivers.load(options.linuxnet_interface_driver)(options, machine.links, machine.runner)
        self._serves = underlay is not None
        self._gateway = Gateway(options, machine.links, machine.runner)
        self._manager = manager.Manager((underlay or manager.Flat)(options, machine.links), driver, self._gateway)
        self._standings = NetworkDeviceRecords(options.networks_path, machine.links)
        self.dnsmasq, self._ipv6 = Dnsmasq(options, machine.runner), IPv6(options, machine.links, machine.runner)
        self._floating = FloatingOnDevices(options, machine.links, machine.runner)
        self._applied: tuple[tuple[Table, ...], ...] | None = None

    # --- the contract -------------------------------------------------------------------------------------------------

    def prepare(self, orders: Sequence[NetworkOnHost], again: bool = False) -> None:
        served = self._here(orders)
        wanted = self._tables(served, orders)
        if not again and wanted == self._applied:
            return
        if self._serves:
            self._machine.enable_forwarding()
            self._gateway.ensure_metadata_address()
            if self._options.use_ipv6 and any(one.network.cidr_v6 for one in served):
                self._machine.enable_forwarding_v6()
        for name, packets, tables in zip(Filters._fields, self._machine.filters, wanted, strict=True):
            _step(name, lambda packets=packets, tables=tables: packets.apply(tables))  # type: ignore[misc]
        _step("floating", lambda: self._floating.converge(translated(served, self._options)))
        self._applied = wanted

    def serve(self, wanted: NetworkOnHost, orders: Sequence[NetworkOnHost]) -> None:
        one = self._look(wanted)
        if not self._serves:
            return
        if not one.device or not (wanted.network.cidr or wanted.network.cidr_v6):
            LOG.warning("Network %s has no bridge or no range; not serving it", wanted.network.label)
            return
        if idle(wanted, self._options):
            self._clear(one.device)
            return
        _check_bridge(one, self._here(orders))
        for name, work in self._steps(one):
            _step(name, work)

    def keep_only(self, orders: Sequence[NetworkOnHost]) -> None:
        wanted = {one.device for one in self._here(orders)}
        for device in sorted((self.dnsmasq.bridges() | self._standings.devices()) - wanted):
            LOG.info("No network uses %s any more; stopping its services", device)
            self._clear(device)
        self._book.drop(self._book.networks() - {order.network.uuid for order in orders})

    def check_floating(self, interface: str | None) -> None:
        self._floating.check(interface)

    # --- internals ----------------------------------------------------------------------------------------------------

    def _steps(self, one: LocalNetwork) -> Iterator[tuple[str, Callable[[], object]]]:
        """Yield the steps that set up a network, in this order. Each repeats harmlessly, and completes an interrupted
        run."""
        yield "record", lambda: self._standings.note(self._standing(one))
        yield "link", lambda: self._manager.ensure_link(one.network)
        yield "address", lambda: self._manager.ensure_address(one.network, one.device)
        yield "join", lambda: self._manager.join(one.network)
        yield "ipv6", lambda: self._ipv6.serve(one.network, one.device)
        yield "dhcp", lambda: self._serve_dhcp(one)

    def _standing(self, one: LocalNetwork) -> NetworkDevices:
        network = one.network
        v4 = (gateway_address(network),) if network.enable_dhcp and network.cidr else ()
        v6: Iterable[Address] = ()
        if self._options.use_ipv6 and network.cidr_v6:
            v6 = addresses_v6(network, self._options)
        return NetworkDevices(network=network.uuid, device=one.device, interface=one.interface,
                              made=self._manager.made(network), addresses=(*v4, *v6))

    def _serve_dhcp(self, one: LocalNetwork) -> None:
        if not one.network.enable_dhcp or not one.network.cidr:
            self.dnsmasq.stop(one.device)
            return
        dropped = self.dnsmasq.serve(one.served, one.order.addresses)
        self._drop_leases(one, dropped)

    def _tables(self, served: Sequence[LocalNetwork], orders: Sequence[NetworkOnHost]) -> tuple[tuple[Table, ...], ...]:
        if not self._serves:
            return (firewall.nothing(self._options), firewall.tables_v6((), self._options),
                    isolation.tables((), self._options))
        own = [cidr for order in orders for cidr in (order.network.cidr, order.network.cidr_v6) if cidr]
        forbidden = self._machine.forbidden(own)
        return (firewall.tables(served, self._options, forbidden),
                firewall.tables_v6(served, self._options, forbidden), isolation.tables(served, self._options))

    def _look(self, order: NetworkOnHost) -> LocalNetwork:
        return here(order, self._options, self._manager.driver.device, self._manager.interface)

    def _here(self, orders: Iterable[NetworkOnHost]) -> list[LocalNetwork]:
        """Return the networks that this host serves now; none with FlatManager."""
        return [self._look(order) for order in orders if self._serves and not idle(order, self._options)]

    def _drop_leases(self, one: LocalNetwork, dropped: frozenset[Lease]) -> None:
        """Release leases of addresses that their owners lost; otherwise dnsmasq would refuse the addresses to the next
        owner."""
        uuid = one.network.uuid
        mine = {Lease(host.mac.lower(), host.address) for host in one.order.addresses if not host.elsewhere}
        held = {Lease(lease.mac.lower(), lease.address) for lease in self._book.held(uuid)}
        stale = (dropped | held) - mine
        if not stale or not self._options.force_dhcp_release:
            return
        for lease in sorted(stale):
            with failures.best_effort(LOG, "Could not release the lease of %s; it stays until it expires: %s",
                    lease.address, on=errors.host.CommandFailed):
                release_lease(self._machine.runner, one.device, lease.address, lease.mac)
        self._book.forget(uuid, stale)

    def _clear(self, device: str) -> None:
        """Stop the services of a network, and remove nova's addresses, which would otherwise attract the range's
        packets. Unused devices that nova created are removed too. No error if there are none."""
        record = self._standings.read(device)
        if record is None:
            self._drop_router(device)
        _step("clear-dhcp", lambda: self.dnsmasq.stop(device))
        _step("clear-ipv6", lambda: self._ipv6.stop(device))
        if record is not None:
            self._manager.driver.remove(Network(uuid=record.network, label=device))
            self._book.drop([record.network])
        _step("clear-record", lambda: self._standings.clear(device))

    def _drop_router(self, device: str) -> None:
        """Remove the address in dnsmasq's options, left by a release that kept no records."""
        opts = DnsmasqPaths.of(self._options.networks_path, device).opts
        router = _router(opts.read_text()) if opts.exists() else None
        if router is not None and self._machine.links.exists(device):
            for address in self._machine.links.addresses(device):
                if address.address == router:
                    self._machine.links.delete_address(device, address)


def _step(name: str, work: Callable[[], object]) -> None:
    faults.reached(FAULTS, name, "before")
    work()
    faults.reached(FAULTS, name, "after")


def _check_bridge(wanted: LocalNetwork, served: Iterable[LocalNetwork]) -> None:
    """Check that a bridge has only one DHCP server: of two networks on it, the older one is served."""
    network = wanted.network
    others = [other.network for other in served if other.device == wanted.device
              and other.network.uuid != network.uuid and other.network.enable_dhcp
              and (other.network.id, other.network.uuid) < (network.id, network.uuid)]
    if others and network.enable_dhcp:
        raise errors.network.BridgeTaken(label=network.label, bridge=wanted.device, other=others[0].label)


def _router(opts: str) -> str | None:
    """Return the router from an options file of nova."""
    for line in opts.splitlines():
        code, _comma, value = line.partition(",")
        if code == "3" and value:
            return str(ipaddress.ip_address(value))
    return None
