"""nova-network's networks as the API showed them up to 2.35."""

from __future__ import annotations

from collections.abc import Callable

from nova.api.request import Request
from nova.api.view import Out, View, micros_of
from nova.model.network.networks import NOVA_NETWORK, FixedAddressRow, Interface, Network

ADMIN = "admin"  # flag: the caller is an administrator

#: Fields that every user of a network sees; attributes have the same names.
FOR_ALL = ("label", "cidr", "netmask", "broadcast", "gateway", "dns1", "dns2", "cidr_v6", "netmask_v6", "gateway_v6")
FOR_ADMINS = ("bridge", "bridge_interface", "dhcp_server", "dhcp_start", "host", "mtu", "project_id",
              "vpn_private_address", "vpn_public_address", "vpn_public_port")
NOT_OF_NEUTRON = ("enable_dhcp", "injected", "multi_host", "priority", "rxtx_base", "share_address", "vlan")


def _if_ours(name: str) -> Callable[[Network, Request], bool | int | None]:
    def shown(network: Network, req: Request) -> bool | int | None:
        value: bool | int | None = getattr(network, name) if _ours(network) else None
        return value
    return shown


def _ours(network: Network) -> bool:
    """True for nova-network's networks; for Neutron's the flags are null."""
    return network.back_end == NOVA_NETWORK


def _type(name: str) -> tuple[str, str]:
    return ("integer" if name in ("priority", "rxtx_base", "vlan") else "boolean", "null")


FULL = View(
    Out("id", "uuid"),
    *(Out(name, name) for name in FOR_ALL),
    *(Out(name, name, flag=ADMIN) for name in FOR_ADMINS),
    *(Out(name, _if_ours(name), flag=ADMIN, type=_type(name)) for name in NOT_OF_NEUTRON),
    Out("created_at", micros_of("created_at"), flag=ADMIN),
    Out("updated_at", micros_of("updated_at"), flag=ADMIN),
    Out("deleted", lambda network, req: False if _ours(network) else None, flag=ADMIN, type=("boolean", "null")),
    Out("deleted_at", lambda network, req: None, flag=ADMIN, type="null"),
    of=Network,
)


def flags(req: Request) -> frozenset[str]:
    """Return the flags of the caller: only an administrator sees fields about hosts."""
    return frozenset({ADMIN} if req.context.is_admin else ())


def listed(networks: tuple[Network, ...], req: Request) -> dict[str, object]:
    """Return ``{"networks": [...]}``, with the fields that the caller may see."""
    return {"networks": FULL.all(networks, req, flags(req))}


#: Fields that a project sees of its networks in os-tenant-networks.
OF_PROJECT = View(Out("id", "uuid"), Out("label", "label"),
                  Out("cidr", lambda network, req: str(network.cidr), type="string"), of=Network)

FIXED = View(Out("address", "address"), Out("cidr", "cidr"), Out("host", "host"), Out("hostname", "hostname"),
             Out("reserved", "reserved", since="2.4"), of=FixedAddressRow)

LEGACY = "legacy"  # flag: the request came below /v2
VIF = View(Out("id", "id"), Out("mac_address", "mac"), Out("net_id", "network_id", since="2.12"),
           Out("OS-EXT-VIF-NET:net_id", "network_id", flag=LEGACY, until="2.11"), of=Interface)
