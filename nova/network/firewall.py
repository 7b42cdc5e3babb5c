"""The iptables rules of a network host, computed from the networks that it serves: pure functions.

Operators know the texts and chains from nova-network. The format is that of iptables-save, so that correct rules are
recognized and left unchanged.
"""

from __future__ import annotations

import dataclasses
import ipaddress
from collections.abc import Iterable, Iterator, Sequence

from nova.model.network.forbidden_ranges import METADATA_ADDRESS, Forbidden
from nova.model.network.networks import Network
from nova.network import translation
from nova.network.local_network import LocalNetwork
from nova.network.options import NetworkHostOptions
from nova.network.translation import Translated
from nova.privileged import forbidden_rules
from nova.privileged.forbidden_rules import MetadataService
from nova.privileged.iptables import Table

PROGRAM = "nova-network"
TOP, BOTTOM = "nova-filter-top", "nova-postrouting-bottom"  # shared by all of nova's programs
LINK_LOCAL = "fe80::/10"
VPN_PORT = 1194
GUEST_SERVICES = tuple((protocol, port) for port in (67, 53) for protocol in ("udp", "tcp"))  # DHCP, DNS
NOT_TRANSLATED = "-m conntrack ! --ctstate DNAT"
NOTHING = Forbidden()


def chain(name: str) -> str:
    """Return the name of a chain of this program."""
    return f"{PROGRAM}-{name}"


def tables(served: Iterable[LocalNetwork], options: NetworkHostOptions, forbidden: Forbidden = NOTHING
           ) -> tuple[Table, ...]:
    """Return all IPv4 tables of this host for these networks, in an order that does not depend on theirs."""
    here = tuple(served)
    networks = _ordered(one.served for one in here if one.network.cidr and one.device)
    return (_filter(networks, options, forbidden), _nat(networks, translation.translated(here, options), options),
            _mangle(networks))


def tables_v6(served: Iterable[LocalNetwork], options: NetworkHostOptions, forbidden: Forbidden = NOTHING,
              ) -> tuple[Table, ...]:
    """Return the tables for IPv6, which is not translated."""
    networks = _ordered(one.served for one in served if one.network.cidr_v6 and one.device)
    if not options.use_ipv6:
        return (_emptied(_filter_v6((), options, NOTHING)),)
    return (_filter_v6(networks, options, forbidden),)


def nothing(options: NetworkHostOptions) -> tuple[Table, ...]:
    """Return tables without rules: existing chains of nova are emptied."""
    return tuple(_emptied(table) for table in tables((), options))


def _emptied(table: Table) -> Table:
    first = {name: tuple(target for target in targets if target in table.chains)
             for name, targets in table.first.items()}
    return dataclasses.replace(table, sparse=True, shared=(), chains=dict.fromkeys(table.chains, ()),
                               first=first, last={})


def _ordered(networks: Iterable[Network]) -> list[Network]:
    return sorted(networks, key=lambda net: (net.id, net.uuid))


def _filter(networks: Sequence[Network], options: NetworkHostOptions, forbidden: Forbidden) -> Table:
    return Table(
        "filter",
        chains={chain("INPUT"): _unique(rule for net in networks for rule in _guest_services(net, options)),
                chain("OUTPUT"): (),
                chain("FORWARD"): _unique([*_forbidden_entries(networks, forbidden, 4),
                                           *(rule for net in networks for rule in _vpn_forwarding(net)),
                                           *(rule for net in networks for rule in _forwarding(net, options))]),
                chain("forbidden"): _forbidden(forbidden, 4, options),
                chain("local"): ()},
        shared=(TOP,),
        first={"INPUT": (chain("INPUT"),), "FORWARD": (TOP, chain("FORWARD")), "OUTPUT": (TOP, chain("OUTPUT")),
               TOP: (chain("local"),)})


def _nat(networks: Sequence[Network], floats: Sequence[Translated], options: NetworkHostOptions) -> Table:
    vpn = _unique(rule for net in networks for rule in _vpn(net))
    snat = [f"-j {chain('float-snat')}", *(rule for net in networks for rule in _snat(net, options))]
    return Table(
        "nat",
        chains={chain("PREROUTING"): (_metadata(options), *vpn, *translation.incoming(floats)),
                chain("OUTPUT"): (*vpn, *translation.incoming(floats)),
                chain("POSTROUTING"): _unique([*(rule for net in networks for rule in _untranslated(net, options)),
                                               *translation.among_guests(floats)]),
                chain("float-snat"): tuple(translation.outgoing(floats)),
                chain("snat"): _unique(snat)},
        shared=(BOTTOM,),
        first={"PREROUTING": (chain("PREROUTING"),), "OUTPUT": (chain("OUTPUT"),),
               "POSTROUTING": (chain("POSTROUTING"),), BOTTOM: (chain("snat"),)},
        last={"POSTROUTING": (BOTTOM,)})


def _filter_v6(networks: Sequence[Network], options: NetworkHostOptions, forbidden: Forbidden) -> Table:
    table = _filter((), options, NOTHING)
    return dataclasses.replace(table, chains={
        **table.chains,
        chain("INPUT"): _unique(rule for net in networks for rule in _guest_services_v6(net, options)),
        chain("FORWARD"): _unique([*_forbidden_entries(networks, forbidden, 6),
                                   *(rule for net in networks for rule in _forwarding(net, options))]),
        chain("forbidden"): _forbidden(forbidden, 6, options)})


def _mangle(networks: Sequence[Network]) -> Table:
    """Return rules that fill in checksums for DHCP clients that verify them: virtual cards leave them out."""
    rules = _unique(f"-o {net.bridge} -p udp -m udp --dport 68 -j CHECKSUM --checksum-fill"
                    for net in networks if net.enable_dhcp)
    return Table("mangle", chains={chain("POSTROUTING"): rules}, first={"POSTROUTING": (chain("POSTROUTING"),)},
                 optional=True)


def _metadata(options: NetworkHostOptions) -> str:
    match = f"-d {METADATA_ADDRESS}/32 -p tcp -m tcp --dport 80"
    if ipaddress.ip_address(options.metadata_host).is_loopback:  # packets for loopback may not come from outside
        return f"{match} -j REDIRECT --to-ports {options.metadata_port}"
    return f"{match} -j DNAT --to-destination {options.metadata_host}:{options.metadata_port}"


def _guest_services(network: Network, options: NetworkHostOptions) -> Iterator[str]:
    """Yield the rules for guests' access to this host: only DHCP, DNS, metadata, ping, and replies (OSSN-0018).

    Matched by the network's own addresses: an interface under the bridge may carry the operator's SSH traffic.
    """
    bridge = f"-i {network.bridge}"
    if network.enable_dhcp:
        for protocol, port in GUEST_SERVICES:
            yield f"{bridge} -p {protocol} -m {protocol} --dport {port} -j ACCEPT"
    yield f"{bridge} -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT"
    yield f"{bridge} -p tcp -m tcp --dport {options.metadata_port} -m conntrack --ctstate DNAT -j ACCEPT"
    yield f"{bridge} -p icmp -m icmp --icmp-type 8 -j ACCEPT"
    yield f"-s {network.cidr} {bridge} -j {options.iptables_drop_action}"


def _guest_services_v6(network: Network, options: NetworkHostOptions) -> Iterator[str]:
    """Yield rules that allow router and neighbor discovery, ping, and replies. All other packets from the range or from
    link-local addresses are dropped."""
    bridge = f"-i {network.bridge}"
    yield f"{bridge} -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT"
    yield f"{bridge} -p ipv6-icmp -j ACCEPT"
    for source in (_plain(network.cidr_v6 or ""), LINK_LOCAL):
        yield f"-s {source} {bridge} -j {options.iptables_drop_action}"


def _forbidden_entries(networks: Sequence[Network], forbidden: Forbidden, version: int) -> Iterator[str]:
    """Yield the jumps to the forbidden ranges, before all accepting rules. Matched by the bridge alone, for any source
    address that a guest sends."""
    for network in networks:
        yield from forbidden_rules.entries(forbidden, version, network.bridge, chain("forbidden"))


def _forbidden(forbidden: Forbidden, version: int, options: NetworkHostOptions) -> tuple[str, ...]:
    metadata = MetadataService(options.metadata_host, options.metadata_port)
    return tuple(forbidden_rules.verdicts(forbidden, version, metadata, [f"-j {options.iptables_drop_action}"]))


def _forwarding(network: Network, options: NetworkHostOptions) -> Iterator[str]:
    bridge, drop = network.bridge, options.iptables_drop_action
    if network.gateway:
        if "all" in options.forward_bridge_interface:
            yield f"-i {bridge} -j ACCEPT"
            yield f"-o {bridge} -j ACCEPT"
            return
        for other in (bridge, *options.forward_bridge_interface):
            yield f"-i {bridge} -o {other} -j ACCEPT"
            yield f"-i {other} -o {bridge} -j ACCEPT"
    yield f"-i {bridge} -j {drop}"
    yield f"-o {bridge} -j {drop}"


def _untranslated(network: Network, options: NetworkHostOptions) -> Iterator[str]:
    """Yield rules for packets that keep their source address: to the metadata service, to the DMZ, and among the
    network's own guests."""
    dmz = [_plain(one) for one in options.dmz_cidr if ":" not in one]
    for destination in (f"{options.metadata_host}/32", *dmz):
        yield f"-s {network.cidr} -d {destination} -j ACCEPT"
    yield f"-s {network.cidr} -d {network.cidr} {NOT_TRANSLATED} -j ACCEPT"


def _snat(network: Network, options: NetworkHostOptions) -> Iterator[str]:
    if not network.enable_dhcp:
        return
    out = f"-o {options.public_interface} -j SNAT --to-source {options.routing_source_ip}"
    for destination in map(_plain, options.force_snat_range if external(network) else ("0.0.0.0/0",)):
        yield f"-s {network.cidr} -d {destination} {out}".replace("-d 0.0.0.0/0 ", "")


def external(network: Network) -> bool:
    """True if the guests' gateway is another machine than their DHCP server."""
    return network.dhcp_server != network.gateway and not network.multi_host


def _vpn_forwarding(network: Network) -> Iterator[str]:
    if _has_vpn(network):
        yield f"-d {network.vpn_private_address}/32 -p udp -m udp --dport {VPN_PORT} -j ACCEPT"


def _vpn(network: Network) -> Iterator[str]:
    """Yield the translation to a project's VPN guest."""
    if _has_vpn(network):
        yield (f"-d {network.vpn_public_address}/32 -p udp -m udp --dport {network.vpn_public_port} "
               f"-j DNAT --to-destination {network.vpn_private_address}:{VPN_PORT}")


def _has_vpn(network: Network) -> bool:
    return bool(network.vpn_private_address and network.vpn_public_address and network.vpn_public_port)


def _plain(cidr: str) -> str:
    """Return a range in the format of iptables-save: without host bits, always with a prefix."""
    return str(ipaddress.ip_network(cidr, strict=False))


def _unique(rules: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(rules))
