"""Errors about networks, their addresses and ports, and VPN servers."""

from __future__ import annotations

from nova.errors import config, kinds

Absent = kinds.NotFound.row("network.absent", "{what} {id} not found.")
AcceleratedPort = kinds.Invalid.row("network.accelerated_port",
    "Port {port_id} belongs to an accelerator, and this cloud has no accelerator service.")
AddressTaken = kinds.Invalid.row("network.address_taken",
    "Fixed IP address {address} is already in use or is not in network {network}.")
Ambiguous = kinds.Conflict.row("network.ambiguous",
    "Multiple possible networks found, use a Network ID to be more specific.")
BadAddress = kinds.Invalid.row("network.bad_address", "Fixed IP address {address} is invalid.")
BadId = kinds.Invalid.row("network.bad_id", "{what} id should be uuid")
BadPort = kinds.Invalid.row("network.bad_port", "Port id {port_id} could not be found.")
BindingFailed = kinds.HostRefused.row("network.binding_failed",
    "Binding failed for port {port_id}, please check neutron logs for more information: host {host} is not connected "
    "to its network.",
    "`openstack network agent list`: is the host's agent alive, and does it serve the network's physnet?")
BridgeHasNetwork = kinds.Conflict.row("network.bridge_has_network",
    "Network {label}: the bridge {bridge} already has network {other}, and a bridge serves one network with DHCP. "
    "Name another bridge, or delete network {other} first.")
BridgeTaken = kinds.Conflict.row("network.bridge_taken",
    "Network {label}: the bridge {bridge} of this host already serves network {other}")
CannotAdd = kinds.Invalid.row("network.cannot_add",
    "Cannot associate network {network} with project {project}: {reason}")
CidrConflict = kinds.Conflict.row("network.cidr_conflict",
    "Requested cidr ({cidr}) conflicts with existing cidr ({other})")
CreationFailed = kinds.Unavailable.row("network.creation_failed", "Create networks failed: {reason}")
DaemonStillRunning = kinds.Unavailable.row("network.daemon_still_running",
    "{program} (pid {pid}) of {device} does not exit",
    "Kill that process by hand; nova-network starts its own again.")
DemandingPort = kinds.Invalid.row("network.demanding_port",
    "Port {port_id} needs host resources (a device, or guaranteed bandwidth) and cannot be attached to an existing "
    "server: create the server with it.")
External = kinds.Forbidden.row("network.external",
    "It is not allowed to create an interface on external network {network_id}")
GroupAmbiguous = kinds.Conflict.row("network.group_ambiguous",
    "Multiple security groups found matching '{name}'. Use an ID to be more specific.")
HasProject = kinds.Conflict.row("network.has_project",
    "Network must be disassociated from project {project_id} before it can be deleted.")
HostDown = kinds.Unavailable.row("network.host_down", "nova-network on '{host}' does not report.",
    "Start nova-network there, or give the network to another host (`nova-manage network modify --host`).")
HostLate = kinds.Unavailable.row("network.host_late",
    "nova-network on '{host}' has not applied its update within {seconds:.0f} s.",
    "nova-network's log there shows which step is slow, usually iptables.")
InUse = kinds.Conflict.row("network.in_use",
    "Network {network_id} is still in use: servers have {count} of its addresses.")
InterfaceDriver = kinds.NotSupported.row("network.interface_driver",
    "nova.conf, [DEFAULT]linuxnet_interface_driver = {name}: unknown class. Known classes: {known}.")
Invalid = kinds.Invalid.row("network.invalid", "Invalid input for field {field}. {reason}")
Manager = kinds.NotSupported.row("network.manager",
    "nova.conf, [DEFAULT]network_manager = {name}: unknown class. Known classes: {known}.")
NoAddress = kinds.Conflict.row("network.no_address", "Zero fixed ips available in network {network}.",
    "Create another network, or free addresses (`nova-manage fixed list`).")
NoAutoAllocation = kinds.Invalid.row("network.no_auto_allocation",
    "Unable to automatically allocate a network for project {project_id}")
NoCidr = kinds.Invalid.row("network.no_cidr", "No CIDR requested")
NoFloatingInterface = kinds.Invalid.row("network.no_floating_interface", "Interface {interface} not found.")
NoHost = kinds.Unavailable.row("network.no_host", "Network {network} has no host: start nova-network on a host.")
#: Only in /v2, where a well-formed but incomplete request has another status.
NoId = kinds.Invalid.row("network.no_id",
    "The request needs id: a network's, or null for any network without a project.", status=422)
NoMac = kinds.Unavailable.row("network.no_mac", "No free MAC address was found in {attempts} attempts.",
    "Raise [DEFAULT]create_unique_mac_address_attempts; more likely this prefix has no free addresses left.")
NoOwners = kinds.NotSupported.row("network.no_owners",
    "The networks of {manager} are shared by all projects: they have no project or host that could be changed.")
NoPortSecurity = kinds.Invalid.row("network.no_port_security",
    "Network requires port_security_enabled and subnet associated in order to apply security groups: network "
    "{network_id} lacks them.")
NoPortThere = kinds.Invalid.row("network.no_port_there", "Network {network} could not be found for instance {server}.")
NoSubnet = kinds.Invalid.row("network.no_subnet",
    "Network {network_id} requires a subnet in order to boot instances on.")
NoSuchAddress = kinds.NotFound.row("network.no_such_address", "Fixed IP not found for address {address}.")
NoSuchGroup = kinds.Invalid.row("network.no_such_group", "Security group {name} not found.")
NoSuchRange = kinds.NotFound.row("network.no_such_range", "Network {range} could not be found.")
NoVlan = kinds.Conflict.row("network.no_vlan", "No VLAN number is left: {vlan} is above {last}.")
NoVlanInterface = kinds.NotSupported.row("network.no_vlan_interface",
    "Network {label} has VLAN {vlan}, but no interface to carry it: set [DEFAULT]vlan_interface in nova.conf, or the "
    "network's bridge_interface")
NoneFree = kinds.Invalid.row("network.none_free", "No network without a project is left for project {project_id}.")
NotFound = kinds.NotFound.row("network.not_found", "Network {network_id} could not be found.")
NotItsAddress = kinds.Invalid.row("network.not_its_address", "Instance {server} has no fixed IP address {address}.")
NotServed = kinds.NotSupported.row("network.not_served",
    "The network service in use ({back_end}) does not support {call}.")
OfAnother = kinds.Conflict.row("network.of_another", "Network {network_id} belongs to project {project_id}.")
Option = kinds.Invalid.row("network.option", "nova.conf, [DEFAULT]{option} = {value}: {reason}")
OverPortQuota = kinds.OverQuota.row("network.over_port_quota", "The network service refused: {reason}")
OverQuota = kinds.OverQuota.row("network.over_quota", "Quota exceeded, too many networks: at most {limit}.")
PortDnsName = kinds.Invalid.row("network.port_dns_name",
    "Port {port_id} not usable for server {server}: its DNS name is {dns_name}, not {hostname}.")
PortInUse = kinds.Conflict.row("network.port_in_use", "Port {port_id} is still in use.")
PortTwice = kinds.Invalid.row("network.port_twice", "Port {port_id} is requested more than once.")
PortWithoutAddress = kinds.Invalid.row("network.port_without_address",
    "Port {port_id} requires a FixedIP in order to be used.")
Refused = kinds.Invalid.row("network.refused", "{reason}")
TellingLate = kinds.Unavailable.row("network.telling_late",
    "Network hosts could not be updated within {seconds:.0f} s.")
TooLarge = kinds.Invalid.row("network.too_large", "{field}: one request can create at most {most}, not {given}.")
TooManyPorts = kinds.OverQuota.row("network.too_many_ports", "Maximum number of ports exceeded")
Unclear = kinds.Invalid.row("network.unclear", "{reason}")
UnknownManager = config.Wrong.row("network.unknown_manager",
    "[DEFAULT]network_manager cannot be used: it must be one of {known}.")
VlanTaken = kinds.Conflict.row("network.vlan_taken", "Detected existing vlan with id {vlan}")
WrongHost = kinds.Conflict.row("network.wrong_host", "An order for {asked} came to {host}")

CloudpipeNoNetwork = kinds.NotFound.row("cloudpipe.no_network", "Project {project_id} has no network.")
CloudpipeNotFound = kinds.NotFound.row("cloudpipe.not_found",
    "Unknown VPN server action {id}: only configure-project is supported.")
CloudpipeUnavailable = kinds.Invalid.row("cloudpipe.unavailable", "No VPN server can be created: {reason}.")
