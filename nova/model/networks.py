"""Networks, their addresses, and a server's interfaces on them."""

from __future__ import annotations

from nova.model.base import HostName, Time, Value


class Network(Value):
    """One of nova-network's networks. ``uuid`` is the name the API uses; addresses are text."""

    id: int = 0
    uuid: str
    label: str
    cidr: str | None = None
    netmask: str | None = None
    broadcast: str | None = None
    gateway: str | None = None
    dhcp_start: str | None = None
    dhcp_server: str | None = None
    enable_dhcp: bool = True
    share_address: bool = False
    dns1: str | None = None
    dns2: str | None = None
    cidr_v6: str | None = None
    netmask_v6: str | None = None
    gateway_v6: str | None = None
    bridge: str | None = None
    bridge_interface: str | None = None
    vlan: int | None = None
    mtu: int | None = None
    injected: bool = False
    multi_host: bool = False
    host: str | None = None
    project_id: str | None = None
    priority: int | None = None
    vpn_public_address: str | None = None
    vpn_public_port: int | None = None
    vpn_private_address: str | None = None
    rxtx_base: int | None = None
    created_at: Time | None = None
    updated_at: Time | None = None


class NewNetwork(Value):
    """What ``nova-manage network create`` asks for; the rest is derived (contract/legacy/nova_network.md, 3)."""

    label: str
    cidr: str | None = None  # one of cidr and cidr_v6 must be there
    bridge: str | None = None
    bridge_interface: str | None = None
    gateway: str | None = None
    dhcp_server: str | None = None
    dns1: str | None = None
    dns2: str | None = None
    mtu: int | None = None
    num_networks: int = 1
    network_size: int | None = None
    fixed_cidr: str | None = None
    allowed_start: str | None = None
    allowed_end: str | None = None
    uuid: str | None = None
    project_id: str | None = None
    priority: int | None = None
    multi_host: bool = False
    cidr_v6: str | None = None
    gateway_v6: str | None = None
    enable_dhcp: bool = True
    share_address: bool = False


class RequestedNetwork(Value):
    """One entry of ``networks`` in a create request."""

    network_id: str | None = None
    port_id: str | None = None
    fixed_ip: str | None = None
    tag: str | None = None


class FixedAddress(Value):
    address: str
    version: int = 4


class Interface(Value):
    """A server's interface, whole: all that the API shows, the guest's XML needs and DHCP hands out."""

    id: str  # vif or port uuid
    mac: str
    network_id: str  # uuid
    label: str
    bridge: str | None = None
    addresses: tuple[FixedAddress, ...] = ()
    floating_addresses: tuple[FixedAddress, ...] = ()
    cidr: str | None = None
    gateway: str | None = None
    dhcp_server: str | None = None
    dns: tuple[str, ...] = ()
    mtu: int | None = None
    tag: str | None = None
    type: str = "bridge"
    device: str | None = None  # the tap's name on the host
    multi_host: bool = False
    should_create_bridge: bool = False
    bridge_interface: str | None = None


class DhcpHost(Value):
    """One line for dnsmasq's hosts file: an allocated address of a network."""

    network_uuid: str
    mac: str
    address: str
    hostname: str
    server_uuid: str = ""
    leased: bool = False


class NetworkOnHost(Value):
    """All that a network host needs to serve one network: the network and its allocated addresses (whole, stamped)."""

    network: Network
    addresses: tuple[DhcpHost, ...] = ()
    version: int = 0  # grows with each change of the network's addresses; an older one never replaces a newer


class Lease(Value):
    """What dnsmasq tells through its script. ``action`` is add, old or del."""

    host: HostName
    action: str
    mac: str
    address: str
    hostname: str | None = None
