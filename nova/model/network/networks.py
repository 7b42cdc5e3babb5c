"""Networks, their addresses, and a server's interfaces on them."""

from __future__ import annotations

from collections.abc import Mapping

from nova.model.base import HostName, Time, Value
from nova.model.network.floating import FloatingOnHost

NOVA_NETWORK, NEUTRON = "nova-network", "neutron"


class Network(Value):
    """One of nova-network's networks. ``uuid`` is the name the API uses; addresses are text. Of one of Neutron's
    (``back_end``) only ``uuid`` and ``label`` say anything."""

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
    """What ``nova-manage network create`` asks for; the rest is derived (nova-manage(1))."""

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
    single_host: bool = False  # neither of both: as configured
    cidr_v6: str | None = None
    gateway_v6: str | None = None
    enable_dhcp: bool = True
    share_address: bool = False
    vlan: int | None = None  # of the first network; the others' follow
    vlan_start: int | None = None
    vpn_start: int | None = None
    by_project: bool = False  # the project makes it for itself: it counts in its quota


class NetworkChange(Value):
    """Whose a network is, and which host serves it: ``fields`` names what to write (None is a value)."""

    uuid: str
    fields: tuple[str, ...] = ()  # of: project_id, host
    project_id: str | None = None
    host: HostName | None = None
    forced: bool = False  # by an operator, of whichever manager's networks


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
    """One entry of ``networks`` in a create request."""

    network_id: str | None = None
    port_id: str | None = None
    fixed_ip: str | None = None
    tag: str | None = None
    vpn: bool = False  # the address that the network sets aside for its project's VPN server
    may_be_external: bool = False  # of an attach: policy network:attach_external_network passed


class PortDemand(Value):
    """What a port takes of the host it is bound on: amounts by resource class from one provider of these traits
    (``group`` is the port's resource request group), and a device for a direct vnic type."""

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
    """A range of an interface's network. ``dhcp``: its addresses come by DHCP (or, for IPv6, as ``ipv6_mode`` says:
    slaac, dhcpv6-stateful, dhcpv6-stateless)."""

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
    """``subnet_id``: Neutron's; of nova-network's, the range that the address is in says its subnet."""

    address: str
    version: int = 4
    subnet_id: str | None = None


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
    subnets: tuple[Subnet, ...] = ()  # all of them; ``cidr`` and its like are the first IPv4 one's
    vlan: int | None = None  # of nova-network's VlanManager, whose bridge stands on the host's device of that number
    should_create_vlan: bool = False
    injected: bool = False  # the guest is told its address (network_data, network_config), not by DHCP
    project_id: str | None = None  # the network's, where it is one project's
    # a port of Neutron's
    vnic_type: str = "normal"
    profile: Mapping[str, object] = {}  # binding:profile, as we wrote it
    details: Mapping[str, object] = {}  # binding:vif_details
    ovs_interface_id: str | None = None
    status: str | None = None  # ACTIVE, DOWN ...; None: nova-network's, which has no such thing
    given: bool = False  # the user's own port: it is unbound, never deleted
    filtered: bool = True  # port security: spoofed addresses are dropped, security groups apply
    security_group_ids: tuple[str, ...] = ()


class DhcpHost(Value):
    """One line for dnsmasq's hosts file: an allocated address of a network."""

    network_uuid: str
    mac: str
    address: str
    hostname: str
    server_uuid: str = ""
    leased: bool = False
    vif_id: str = ""
    default_route: bool = True  # whether the server's default route is by this interface: its first one's is
    elsewhere: bool = False  # of a multi-host network: a guest of another host, whose name is known here and no more


class NetworkOnHost(Value):
    """All that a network host needs to serve one network: the network and its allocated addresses (whole, stamped)."""

    network: Network
    addresses: tuple[DhcpHost, ...] = ()
    floating: tuple[FloatingOnHost, ...] = ()  # those of its addresses, on this host
    host_address: str | None = None  # of a multi-host network: this host's own, its guests' gateway and DHCP server
    version: int = 0  # grows with each change of the network's addresses; an older one never replaces a newer


class LeaseChange(Value):
    """What dnsmasq tells through its script. ``action`` is add, old or del."""

    host: HostName
    action: str
    mac: str
    address: str
    hostname: str | None = None
