"""Which networks this host has addresses in, over netlink."""

from __future__ import annotations

import ipaddress
from typing import TYPE_CHECKING

from nova.model.base import Library
from nova.privileged.links import IPV4, IPV6, SCOPES
from nova.privileged.netlink import conversation

if TYPE_CHECKING:
    from pyroute2 import IPRoute

IFF_LOOPBACK = 0x8


def networks() -> tuple[str, ...]:
    """Of all its devices but loopback, bridges included (an interface that became a port left its addresses there).
    Link-local ones are left out: they are every wire's. In order. host.Link: the kernel does not answer."""
    def work(ip: IPRoute) -> set[str]:
        loopback = {link["index"] for link in ip.get_links() if link["flags"] & IFF_LOOPBACK}
        return {_network(found) for family in (IPV4, IPV6) for found in ip.get_addr(family=family)
                if found["index"] not in loopback and found["scope"] < SCOPES["link"]}
    return tuple(sorted(conversation("all devices", work)))


def _network(found: Library) -> str:
    """Of a point-to-point address the other end, which is what the kernel has a route to."""
    address = found.get_attr("IFA_ADDRESS") or found.get_attr("IFA_LOCAL")
    return str(ipaddress.ip_network(f"{address}/{found['prefixlen']}", strict=False))


__all__ = ["networks"]
