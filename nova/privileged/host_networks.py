"""Networks in which this host has addresses, read over netlink."""

from __future__ import annotations

import ipaddress
from typing import TYPE_CHECKING

from nova.privileged.links import IPV4, IPV6, SCOPES
from nova.privileged.netlink import NetlinkMessage, conversation

if TYPE_CHECKING:
    from pyroute2 import IPRoute

IFF_LOOPBACK = 0x8


def networks() -> tuple[str, ...]:
    """Return the sorted networks of all devices except loopback. Bridges are included, because an interface that became
    a port left its addresses there. Link-local networks are left out: every link has them. Raises host.Link if the
    kernel does not answer."""
    def work(ip: IPRoute) -> set[str]:
        loopback = {link["index"] for link in ip.get_links() if link["flags"] & IFF_LOOPBACK}
        return {_network(found) for family in (IPV4, IPV6) for found in ip.get_addr(family=family)
                if found["index"] not in loopback and found["scope"] < SCOPES["link"]}
    return tuple(sorted(conversation("all devices", work)))


def _network(found: NetlinkMessage) -> str:
    """Return the network of an address. For a point-to-point address, that is the other end, to which the kernel has a
    route."""
    address = found.get_attr("IFA_ADDRESS") or found.get_attr("IFA_LOCAL")
    return str(ipaddress.ip_network(f"{address}/{found['prefixlen']}", strict=False))


__all__ = ["networks"]
