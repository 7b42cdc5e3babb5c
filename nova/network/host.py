"""What this host has of its networks: bridge, addresses, packet filters, dnsmasq, radvd and leases, made to be so."""

from __future__ import annotations

import ipaddress
import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple, Protocol

from nova import errors, faults
from nova.model.network.forbidden_ranges import Forbidden
from nova.model.network.networks import Network, NetworkOnHost
from nova.network import drivers, firewall, isolation, manager
from nova.network.device_records import Standing, Standings
from nova.network.dnsmasq import Dnsmasq, Lease
from nova.network.dnsmasq import Paths as DnsmasqPaths
from nova.network.floating import FloatingOnDevices
from nova.network.gateway import Gateway, HostLinks, gateway_address
from nova.network.ipv6 import IPv6
from nova.network.ipv6 import addresses as addresses_v6
from nova.network.leases import LeaseBook
from nova.network.local_network import Here, here, idle
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
    """The kernel's packet filters: by IPv4, by IPv6, and of frames on bridges."""

    ipv4: PacketFilter
    ipv6: PacketFilter
    frames: PacketFilter


def nothing_forbidden(own: Iterable[str]) -> Forbidden:
    """Guests reach everything."""
    return Forbidden()


class Machine(NamedTuple):
    """The parts of a host that need root; and what guests of these ranges are kept from now."""

    links: HostLinks
    runner: CommandRunner
    filters: Filters
    enable_forwarding: Callable[[], None] = enable_forwarding
    enable_forwarding_v6: Callable[[], None] = enable_forwarding_v6
    forbidden: Callable[[Iterable[str]], Forbidden] = nothing_forbidden


class HostSide(Protocol):
    """What the service brings to a state; both calls repeat harmlessly."""

    def prepare(self, orders: Sequence[NetworkOnHost], again: bool = False) -> None:
        """What is common to all networks: firewall, forwarding, metadata address. ``again``: look at the kernel even
        when nothing changed here."""

    def serve(self, wanted: NetworkOnHost, orders: Sequence[NetworkOnHost]) -> None:
        """One of the networks this host serves, which are ``orders``."""

    def keep_only(self, orders: Sequence[NetworkOnHost]) -> None:
        """Take away what is here of networks that are not among these."""

    def check_floating(self, interface: str | None) -> None:
        """network.NoFloatingInterface: a floating address could not stand on that device (None:
        ``public_interface``)."""


class NoHostSide:
    """``fake_network``: networks in the records alone."""

    def prepare(self, orders: Sequence[NetworkOnHost], again: bool = False) -> None: ...

    def serve(self, wanted: NetworkOnHost, orders: Sequence[NetworkOnHost]) -> None: ...

    def keep_only(self, orders: Sequence[NetworkOnHost]) -> None: ...

    def check_floating(self, interface: str | None) -> None: ...


class NetworkHost:
    """The real one."""

    def __init__(self, options: NetworkHostOptions, machine: Machine, book: LeaseBook) -> None:
        self._options, self._machine, self._book = options, machine, book
        ground = manager.load(options.network_manager)
        driver = drivers.load(options.linuxnet_interface_driver)(options, machine.links, machine.runner)
        self._serves = ground is not None
        self._gateway = Gateway(options, machine.links, machine.runner)
        self._manager = manager.Manager((ground or manager.Flat)(options, machine.links), driver, self._gateway)
        self._standings = Standings(options.networks_path, machine.links)
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
            LOG.warning("Network %s has no bridge or no range: nothing to serve", wanted.network.label)
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
            LOG.info("No network on %s any more: what serves it ends", device)
            self._clear(device)
        self._book.drop(self._book.networks() - {order.network.uuid for order in orders})

    def check_floating(self, interface: str | None) -> None:
        self._floating.check(interface)

    # --- inside -------------------------------------------------------------------------------------------------------

    def _steps(self, one: Here) -> Iterator[tuple[str, Callable[[], object]]]:
        """All that makes a network, in this order; each step repeats harmlessly, and ends what was begun."""
        yield "record", lambda: self._standings.note(self._standing(one))
        yield "link", lambda: self._manager.ensure_link(one.network)
        yield "address", lambda: self._manager.ensure_address(one.network, one.device)
        yield "join", lambda: self._manager.join(one.network)
        yield "ipv6", lambda: self._ipv6.serve(one.network, one.device)
        yield "dhcp", lambda: self._serve_dhcp(one)

    def _standing(self, one: Here) -> Standing:
        network = one.network
        v4 = (gateway_address(network),) if network.enable_dhcp and network.cidr else ()
        v6: Iterable[Address] = ()
        if self._options.use_ipv6 and network.cidr_v6:
            v6 = addresses_v6(network, self._options)
        return Standing(network=network.uuid, device=one.device, interface=one.interface,
                        made=self._manager.made(network), addresses=(*v4, *v6))

    def _serve_dhcp(self, one: Here) -> None:
        if not one.network.enable_dhcp or not one.network.cidr:
            self.dnsmasq.stop(one.device)
            return
        dropped = self.dnsmasq.serve(one.served, one.order.addresses)
        self._drop_leases(one, dropped)

    def _tables(self, served: Sequence[Here], orders: Sequence[NetworkOnHost]) -> tuple[tuple[Table, ...], ...]:
        if not self._serves:
            return (firewall.nothing(self._options), firewall.tables_v6((), self._options),
                    isolation.tables((), self._options))
        own = [cidr for order in orders for cidr in (order.network.cidr, order.network.cidr_v6) if cidr]
        forbidden = self._machine.forbidden(own)
        return (firewall.tables(served, self._options, forbidden),
                firewall.tables_v6(served, self._options, forbidden), isolation.tables(served, self._options))

    def _look(self, order: NetworkOnHost) -> Here:
        return here(order, self._options, self._manager.driver.device, self._manager.interface)

    def _here(self, orders: Iterable[NetworkOnHost]) -> list[Here]:
        """The networks that this host serves now; none with FlatManager."""
        return [self._look(order) for order in orders if self._serves and not idle(order, self._options)]

    def _drop_leases(self, one: Here, dropped: frozenset[Lease]) -> None:
        """Leases of addresses that are their owners' no more; else dnsmasq would refuse them to the next owner."""
        uuid = one.network.uuid
        mine = {Lease(host.mac.lower(), host.address) for host in one.order.addresses if not host.elsewhere}
        held = {Lease(lease.mac.lower(), lease.address) for lease in self._book.held(uuid)}
        stale = (dropped | held) - mine
        if not stale or not self._options.force_dhcp_release:
            return
        for lease in sorted(stale):
            try:
                release_lease(self._machine.runner, one.device, lease.address, lease.mac)
            except errors.host.CommandFailed as error:
                LOG.warning("The lease of %s waits for its end: %s", lease.address, error)
        self._book.forget(uuid, stale)

    def _clear(self, device: str) -> None:
        """End what serves a network, and take our addresses away, which would else draw the range's packets here;
        devices that we made go, too, when nobody uses them. Nothing when there is nothing."""
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
        """Of a release that kept no records: the address that dnsmasq's options name."""
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


def _check_bridge(wanted: Here, served: Iterable[Here]) -> None:
    """One DHCP server a bridge: of two networks on one, the older is served."""
    network = wanted.network
    others = [other.network for other in served if other.device == wanted.device
              and other.network.uuid != network.uuid and other.network.enable_dhcp
              and (other.network.id, other.network.uuid) < (network.id, network.uuid)]
    if others and network.enable_dhcp:
        raise errors.network.BridgeTaken(label=network.label, bridge=wanted.device, other=others[0].label)


def _router(opts: str) -> str | None:
    """The router that an options file of ours names."""
    for line in opts.splitlines():
        code, _comma, value = line.partition(",")
        if code == "3" and value:
            return str(ipaddress.ip_address(value))
    return None
