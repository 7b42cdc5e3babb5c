"""Who a network's gateway is in layer 2 and IPv6: computed alike by the host that is it and by whoever names it.

A network host speaks router advertisements from a link-local address that follows from the network (and from the
host, where each host is a gateway of its own): so nobody has to tell anybody what it is.
"""

from __future__ import annotations

import hashlib
import ipaddress

from nova.model.network.networks import Network

PREFIX = "fa:16:3f"  # beside that of guests (fa:16:3e), so that no guest has the same


def own_per_host(network: Network, share_dhcp_address: bool = False) -> bool:
    """Whether each host has an address of its own as gateway and DHCP server of its guests."""
    return network.multi_host and not (network.share_address or share_dhcp_address)


def gateway_mac(network: Network, host: str | None = None) -> str:
    """The MAC of the gateway's device, where we make that device. ``host``: of a multi-host network, where each has
    its own, even where the address is shared: a switch must not see one MAC in two places."""
    name = f"{network.uuid}@{host}" if host and network.multi_host else network.uuid
    tail = hashlib.sha256(name.encode()).digest()[:3]
    return ":".join([PREFIX, *(f"{byte:02x}" for byte in tail)])


def link_local(mac: str) -> str:
    """The IPv6 link-local address that follows from a MAC (modified EUI-64, RFC 4291, appendix A)."""
    octets = bytes.fromhex(mac.replace(":", ""))
    interface = bytes([octets[0] ^ 0x02]) + octets[1:3] + b"\xff\xfe" + octets[3:]
    return str(ipaddress.IPv6Address(b"\xfe\x80" + bytes(6) + interface))


def gateway_v6(network: Network, host: str | None = None) -> str | None:
    """The router that guests of the network learn from advertisements; None: it has no IPv6 range."""
    return link_local(gateway_mac(network, host)) if network.cidr_v6 else None
