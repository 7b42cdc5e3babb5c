"""Which rules a network host has in iptables, from the networks it serves. Pure.

Texts and chains are those that operators know from nova-network (contract/legacy/nova_network.md, section 7), in the
form in which iptables-save prints them, so that what is right is recognised and left alone.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Iterator, Sequence

from nova.model.networks import Network
from nova.network.options import NetworkOptions
from nova.privileged.iptables import Table

PROGRAM = "nova-network"
TOP, BOTTOM = "nova-filter-top", "nova-postrouting-bottom"  # shared by all programs of ours
METADATA_ADDRESS = "169.254.169.254"
GUEST_SERVICES = tuple((protocol, port) for port in (67, 53) for protocol in ("udp", "tcp"))  # DHCP, DNS
NOT_TRANSLATED = "-m conntrack ! --ctstate DNAT"


def chain(name: str) -> str:
    """Our program's own chain."""
    return f"{PROGRAM}-{name}"


def tables(networks: Iterable[Network], options: NetworkOptions) -> tuple[Table, ...]:
    """All that this host shall have for these networks, in an order that does not depend on theirs."""
    served = sorted((net for net in networks if net.cidr and net.bridge), key=lambda net: (net.id, net.uuid))
    return (_filter(served, options), _nat(served, options), _mangle(served))


def _filter(networks: Sequence[Network], options: NetworkOptions) -> Table:
    return Table(
        "filter",
        chains={chain("INPUT"): _unique(rule for net in networks for rule in _guest_services(net, options)),
                chain("OUTPUT"): (),
                chain("FORWARD"): _unique(rule for net in networks for rule in _forwarding(net, options)),
                chain("local"): ()},
        shared=(TOP,),
        first={"INPUT": (chain("INPUT"),), "FORWARD": (TOP, chain("FORWARD")), "OUTPUT": (TOP, chain("OUTPUT")),
               TOP: (chain("local"),)})


def _nat(networks: Sequence[Network], options: NetworkOptions) -> Table:
    snat = [f"-j {chain('float-snat')}", *(rule for net in networks for rule in _snat(net, options))]
    return Table(
        "nat",
        chains={chain("PREROUTING"): (_metadata(options),),
                chain("OUTPUT"): (),
                chain("POSTROUTING"): _unique(rule for net in networks for rule in _untranslated(net, options)),
                chain("float-snat"): (),
                chain("snat"): _unique(snat)},
        shared=(BOTTOM,),
        first={"PREROUTING": (chain("PREROUTING"),), "OUTPUT": (chain("OUTPUT"),),
               "POSTROUTING": (chain("POSTROUTING"),), BOTTOM: (chain("snat"),)},
        last={"POSTROUTING": (BOTTOM,)})


def _mangle(networks: Sequence[Network]) -> Table:
    """DHCP clients that look at checksums don't see the ones a virtual card leaves out."""
    rules = _unique(f"-o {net.bridge} -p udp -m udp --dport 68 -j CHECKSUM --checksum-fill"
                    for net in networks if net.enable_dhcp)
    return Table("mangle", chains={chain("POSTROUTING"): rules}, first={"POSTROUTING": (chain("POSTROUTING"),)},
                 optional=True)


def _metadata(options: NetworkOptions) -> str:
    match = f"-d {METADATA_ADDRESS}/32 -p tcp -m tcp --dport 80"
    if ipaddress.ip_address(options.metadata_host).is_loopback:  # a packet for loopback may not come from outside
        return f"{match} -j REDIRECT --to-ports {options.metadata_port}"
    return f"{match} -j DNAT --to-destination {options.metadata_host}:{options.metadata_port}"


def _guest_services(network: Network, options: NetworkOptions) -> Iterator[str]:
    """What guests may reach of this host itself: DHCP, DNS, metadata, a ping, and answers; nothing else (OSSN-0018).

    By the network's own addresses: an interface under the bridge may bring the operator's ssh along.
    """
    bridge = f"-i {network.bridge}"
    if network.enable_dhcp:
        for protocol, port in GUEST_SERVICES:
            yield f"{bridge} -p {protocol} -m {protocol} --dport {port} -j ACCEPT"
    yield f"{bridge} -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT"
    yield f"{bridge} -p tcp -m tcp --dport {options.metadata_port} -m conntrack --ctstate DNAT -j ACCEPT"
    yield f"{bridge} -p icmp -m icmp --icmp-type 8 -j ACCEPT"
    yield f"-s {network.cidr} {bridge} -j {options.iptables_drop_action}"


def _forwarding(network: Network, options: NetworkOptions) -> Iterator[str]:
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


def _untranslated(network: Network, options: NetworkOptions) -> Iterator[str]:
    """What keeps its source address: to the metadata service, to the DMZ, and among the network's own guests."""
    for destination in (f"{options.metadata_host}/32", *map(_plain, options.dmz_cidr)):
        yield f"-s {network.cidr} -d {destination} -j ACCEPT"
    yield f"-s {network.cidr} -d {network.cidr} {NOT_TRANSLATED} -j ACCEPT"


def _snat(network: Network, options: NetworkOptions) -> Iterator[str]:
    if not network.enable_dhcp:
        return
    out = f"-o {options.public_interface} -j SNAT --to-source {options.routing_source_ip}"
    external = network.dhcp_server != network.gateway and not network.multi_host
    for destination in map(_plain, options.force_snat_range if external else ("0.0.0.0/0",)):
        yield f"-s {network.cidr} -d {destination} {out}".replace("-d 0.0.0.0/0 ", "")


def _plain(cidr: str) -> str:
    """A range as iptables-save prints it: no host bits, always with a prefix."""
    return str(ipaddress.ip_network(cidr, strict=False))


def _unique(rules: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(rules))
