"""Layer-2 and IPv6 identity of a network's gateway: the host that is the gateway and every other service compute the
same.

A network host sends router advertisements from a link-local address derived from the network (and from the host, if
each host is a gateway of its own). So no service has to announce the address.
"""

from __future__ import annotations

import hashlib
import ipaddress

from nova.model.network.networks import Network

PREFIX = "fa:16:3f"  # differs from the prefix of guests (fa:16:3e), so that no guest has the same MAC


def own_per_host(network: Network, share_dhcp_address: bool = False) -> bool:
    """Return whether each host has its own address as gateway and DHCP server of its guests."""
    return network.multi_host and not (network.share_address or share_dhcp_address)


def gateway_mac(network: Network, host: str | None = None) -> str:
    """Return the MAC of the gateway's device, if nova creates that device. ``host``: for a multi-host network, in which
    each host has its own MAC even for a shared address: a switch must not see one MAC in two places."""
    name = f"{network.uuid}@{host}" if host and network.multi_host else network.uuid
    tail = hashlib.sha256(name.encode()).digest()[:3]
    return ":".join([PREFIX, *(f"{byte:02x}" for byte in tail)])


def link_local(mac: str) -> str:
    """Return the IPv6 link-local address of a MAC (modified EUI-64, RFC 4291, appendix A)."""
    octets = bytes.fromhex(mac.replace(":", ""))
    interface = bytes([octets[0] ^ 0x02]) + octets[1:3] + b"\xff\xfe" + octets[3:]
    return str(ipaddress.IPv6Address(b"\xfe\x80" + bytes(6) + interface))


def gateway_v6(network: Network, host: str | None = None) -> str | None:
    """Return the router address that guests learn from advertisements; None if the network has no IPv6 range."""
    return link_local(gateway_mac(network, host)) if network.cidr_v6 else None
