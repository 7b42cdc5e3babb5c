"""nova-network's networks as the API showed them up to 2.35. What is neither text nor the MTU is told as text."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from nova.api.request import Request
from nova.api.view import Out, View, micros_of
from nova.model.networks import NOVA_NETWORK, FixedAddressRow, Interface, Network

ADMIN = "admin"  # flag: the caller is an administrator

#: What every user of a network sees of it; attributes of the same names.
FOR_ALL = ("label", "cidr", "netmask", "broadcast", "gateway", "dns1", "dns2", "cidr_v6", "netmask_v6", "gateway_v6")
TEXTS = ("bridge", "bridge_interface", "dhcp_server", "dhcp_start", "host", "mtu", "project_id", "vpn_private_address",
         "vpn_public_address", "vpn_public_port")
OTHERS = ("enable_dhcp", "injected", "multi_host", "priority", "rxtx_base", "share_address", "vlan")


def _as_text(name: str) -> Callable[[Network, Request], str | None]:
    def shown(network: Network, req: Request) -> str | None:
        value = getattr(network, name)
        return None if value is None or not _ours(network) else str(value)
    return shown


def _ours(network: Network) -> bool:
    """Of Neutron's, no flag says anything: they are null."""
    return network.back_end == NOVA_NETWORK


FULL = View(
    Out("id", "uuid"),
    *(Out(name, name) for name in FOR_ALL),
    *(Out(name, name, flag=ADMIN) for name in TEXTS),
    *(Out(name, _as_text(name), flag=ADMIN) for name in OTHERS),
    Out("created_at", micros_of("created_at"), flag=ADMIN),
    Out("updated_at", micros_of("updated_at"), flag=ADMIN),
    Out("deleted", lambda network, req: "False" if _ours(network) else None, flag=ADMIN, type=("string", "null")),
    Out("deleted_at", lambda network, req: None, flag=ADMIN, type="null"),
    of=Network,
)


def flags(req: Request) -> frozenset[str]:
    return frozenset({ADMIN} if req.context.is_admin else ())


def listed(networks: tuple[Network, ...], req: Request) -> dict[str, Any]:
    return {"networks": FULL.all(networks, req, flags(req))}


#: What a project sees of its networks in os-tenant-networks.
OF_PROJECT = View(Out("id", "uuid"), Out("label", "label"),
                  Out("cidr", lambda network, req: str(network.cidr), type="string"), of=Network)

FIXED = View(Out("address", "address"), Out("cidr", "cidr"), Out("host", "host"), Out("hostname", "hostname"),
             Out("reserved", "reserved", since="2.4"), of=FixedAddressRow)

LEGACY = "legacy"  # flag: the request came below /v2
VIF = View(Out("id", "id"), Out("mac_address", "mac"), Out("net_id", "network_id", since="2.12"),
           Out("OS-EXT-VIF-NET:net_id", "network_id", flag=LEGACY, until="2.11"), of=Interface)
