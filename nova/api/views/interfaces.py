"""A server's interface as os-interface shows it."""

from __future__ import annotations

from nova.api.request import Request
from nova.api.view import Out, View
from nova.model.network.networks import Interface

PLUGGED = "ACTIVE"  # fixed state of interfaces without a state (nova-network's)


def _addresses(interface: Interface, req: Request) -> list[dict[str, object]]:
    """Return the addresses of an interface. Subnets of nova-network have no ids: the network's id is used."""
    return [{"ip_address": one.address, "subnet_id": one.subnet_id or interface.network_id}
            for one in interface.addresses]


INTERFACE = View(
    Out("port_state", lambda interface, req: interface.status or PLUGGED, type="string"),
    Out("fixed_ips", _addresses, type=[{"ip_address": "string", "subnet_id": "string"}]),
    Out("mac_addr", "mac"),
    Out("net_id", "network_id"),
    Out("port_id", "id"),
    Out("tag", "tag", since="2.70"),
    of=Interface,
)
