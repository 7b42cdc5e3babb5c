"""Networks, their addresses, and a server's interfaces on them."""

from __future__ import annotations

from collections.abc import Mapping

from nova.model.base import HostName, Time, Value
from nova.model.network.floating import FloatingOnHost

NOVA_NETWORK, NEUTRON = "nova-network", "neutron"


class Network(Value):
    """A network of nova-network. The API identifies it by ``uuid``; addresses are text. For a Neutron network
    (``back_end``), only ``uuid`` and ``label`` are valid."""

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
    back_end: str = NOVA_NETWORK


class NewNetwork(Value):
    """The request of ``nova-manage network create``; the other fields are derived (nova-manage(1))."""

    label: str
    cidr: str | None = None  # cidr, cidr_v6 or both are required
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
    single_host: bool = False  # neither of both: the configured mode
    cidr_v6: str | None = None
    gateway_v6: str | None = None
    enable_dhcp: bool = True
    share_address: bool = False
    vlan: int | None = None  # of the first network; the next numbers are for the others
    vlan_start: int | None = None
    vpn_start: int | None = None
    by_project: bool = False  # created by the project for itself: counts in its quota


class NetworkChange(Value):
    """Change of a network's project and host. ``fields`` names the fields to write (None is a value)."""

    uuid: str
    fields: tuple[str, ...] = ()  # of: project_id, host
    project_id: str | None = None
    host: HostName | None = None
    forced: bool = False  # by an operator, for networks of any manager


class FixedAddressRow(Value):
    """An address of a network's pool, as an administrator sees it."""

    address: str
    network_uuid: str
    cidr: str | None = None
    reserved: bool = False
    leased: bool = False
    server_uuid: str | None = None
    hostname: str | None = None
    host: str | None = None


class RequestedNetwork(Value):
    """An entry of ``networks`` in a create request."""

    network_id: str | None = None
    port_id: str | None = None
    fixed_ip: str | None = None
    tag: str | None = None
    vpn: bool = False  # the address reserved for the VPN server of the network's project
    may_be_external: bool = False  # for an attach: policy network:attach_external_network passed


class PortDemand(Value):
    """Requirements of a port on its host: amounts by resource class from one provider with these traits (``group`` is
    the port's resource request group), and a device for a direct vnic type."""

    port_id: str
    group: str = ""
    resources: Mapping[str, int] = {}
    traits: tuple[str, ...] = ()
    vnic_type: str = "normal"
    physical_network: str | None = None
    same_subtree: tuple[str, ...] = ()
    numa_policy: str | None = None


class GuestRoute(Value):
    cidr: str
    gateway: str


class Subnet(Value):
    """A range of an interface's network. ``dhcp``: its addresses come by DHCP (or, for IPv6, by ``ipv6_mode``: slaac,
    dhcpv6-stateful, dhcpv6-stateless)."""

    cidr: str
    version: int = 4
    gateway: str | None = None
    dns: tuple[str, ...] = ()
    routes: tuple[GuestRoute, ...] = ()
    dhcp: bool = True
    dhcp_server: str | None = None
    ipv6_mode: str | None = None
    id: str | None = None


class FixedAddress(Value):
    """A fixed address. ``subnet_id`` is Neutron's; an address of nova-network belongs to the subnet whose range
    contains it."""

    address: str
    version: int = 4
    subnet_id: str | None = None


class Interface(Value):
    """A complete interface of a server: all fields for the API, the guest's XML and DHCP."""

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
    subnets: tuple[Subnet, ...] = ()  # all subnets; ``cidr`` and the like are of the first IPv4 one
    vlan: int | None = None  # VlanManager only: number of the VLAN device below the bridge
    should_create_vlan: bool = False
    injected: bool = False  # the guest gets its address by metadata (network_data, network_config), not by DHCP
    project_id: str | None = None  # the network's, if it belongs to one project
    # a Neutron port
    vnic_type: str = "normal"
    profile: Mapping[str, object] = {}  # binding:profile, as nova wrote it
    details: Mapping[str, object] = {}  # binding:vif_details
    ovs_interface_id: str | None = None
    status: str | None = None  # ACTIVE, DOWN ...; None for nova-network, which has no status
    given: bool = False  # created by the user: unbound, but never deleted
    filtered: bool = True  # port security: spoofed addresses are dropped, security groups apply
    security_group_ids: tuple[str, ...] = ()


class DhcpHost(Value):
    """An entry of dnsmasq's hosts file: an allocated address of a network."""

    network_uuid: str
    mac: str
    address: str
    hostname: str
    server_uuid: str = ""
    leased: bool = False
    vif_id: str = ""
    default_route: bool = True  # the server's default route uses this interface, its first one
    elsewhere: bool = False  # multi-host network: a guest of another host, of which only the name is needed here


class NetworkOnHost(Value):
    """All facts that a network host needs to serve one network: the network and all its allocated addresses,
    stamped."""

    network: Network
    addresses: tuple[DhcpHost, ...] = ()
    floating: tuple[FloatingOnHost, ...] = ()  # floating addresses on this host, of its addresses
    host_address: str | None = None  # multi-host network: this host's address as its guests' gateway and DHCP server
    version: int = 0  # increases with each change of the addresses; an older version never replaces a newer one


class LeaseChange(Value):
    """Event that dnsmasq reports through its script. ``action`` is add, old or del."""

    host: HostName
    action: str
    mac: str
    address: str
    hostname: str | None = None
