"""The ebtables rules for frames on bridges, computed from the networks that a host serves: pure functions.

If all hosts of a multi-host network have the same address, each must answer only its own guests. So ARP for that
address and DHCP do not cross the interface to other hosts. Router advertisements of any multi-host network do not cross
it either. If a network's gateway is another machine, frames to the ranges that are translated here are redirected to
this host. Texts have the format of ebtables-save.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Iterator

from nova.network.firewall import chain, external
from nova.network.local_network import LocalNetwork
from nova.network.options import NetworkHostOptions
from nova.network.translation import taken_off_their_way
from nova.privileged.iptables import Table

DHCP_PORTS = "67:68"


def tables(served: Iterable[LocalNetwork], options: NetworkHostOptions) -> tuple[Table, ...]:
    """Return ``filter`` and ``nat``; chains without rules are not created."""
    known = [one for one in served if one.network.cidr or one.network.cidr_v6]
    apart = [(one.interface, one.network.dhcp_server) for one in known
             if one.shared and one.interface and one.network.enable_dhcp and one.network.cidr]
    routers = tuple(dict.fromkeys(
        f"-p IPv6 {way} {one.interface} --ip6-proto ipv6-icmp --ip6-icmp-type router-advertisement -j DROP"
        for one in known if options.use_ipv6 and one.network.multi_host and one.network.cidr_v6 and one.interface
        for way in ("-i", "-o")))
    frames = Table("filter", sparse=True, chains={
        chain("INPUT"): tuple(f"-p ARP -i {interface} --arp-ip-dst {address} -j DROP" for interface, address in apart),
        chain("OUTPUT"): tuple(f"-p ARP -o {interface} --arp-ip-src {address} -j DROP"
                               for interface, address in apart),
        chain("FORWARD"): tuple(dict.fromkeys(
            f"-p IPv4 {way} {interface} --ip-proto udp --ip-dport {DHCP_PORTS} -j DROP"
            for interface, _address in apart for way in ("-i", "-o"))) + routers,
    }, first={name: (chain(name),) for name in ("INPUT", "OUTPUT", "FORWARD")})
    redirected = tuple(dict.fromkeys(rule for one in known for rule in _redirected(one, options)))
    routed = Table("nat", sparse=True, chains={chain("PREROUTING"): redirected},
                   first={"PREROUTING": (chain("PREROUTING"),)})
    return (frames, routed)


def _redirected(one: LocalNetwork, options: NetworkHostOptions) -> Iterator[str]:
    """Yield rules for guests' frames that this host translates, although their gateway is another machine.

    The source address identifies the network; a match by the bridge would need a module that kernels may lack.
    """
    network = one.network
    if external(network):
        yield from taken_off_their_way(one, options)
    if network.cidr and external(network) and options.force_snat_range:
        guests = ipaddress.IPv4Network(network.cidr or "", strict=False)
        yield f"-p IPv4 --ip-src {guests} --ip-dst {guests} -j RETURN"
        for destination in options.force_snat_range:
            yield f"-p IPv4 --ip-src {guests}{_towards(destination)} -j redirect"


def _towards(destination: str) -> str:
    """Return the match in the format of ebtables-save: a host without a prefix, and no match for all addresses."""
    wanted = ipaddress.IPv4Network(destination, strict=False)
    if not wanted.prefixlen:
        return ""
    return f" --ip-dst {wanted.network_address if wanted.prefixlen == 32 else wanted}"
