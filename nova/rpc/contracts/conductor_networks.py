"""The part of ``ConductorRPC`` about networks, floating addresses, security groups and servers' interfaces.

The same calls serve nova-network, with data from the own database, and Neutron. A call that a back end does not have
raises NotSupported.
"""

from __future__ import annotations

from nova.model.base import Scope
from nova.model.network.floating import (
    DnsDomain,
    DnsEntry,
    FloatingAddress,
    FloatingAssociation,
    FloatingPool,
    FloatingQuery,
    FloatingRange,
)
from nova.model.network.networks import (
    FixedAddressRow,
    Interface,
    Network,
    NetworkChange,
    NewNetwork,
    RequestedNetwork,
)
from nova.model.network.security_groups import (
    GroupMembership,
    NewSecurityGroup,
    NewSecurityRule,
    SecurityGroup,
    SecurityGroupQuery,
    SecurityGroupUpdate,
    SecurityRule,
)
from nova.model.security.certificates import Cloudpipe
from nova.model.server.servers import ServerQuery
from nova.rpc.interface import call


class NetworkCalls:
    """Networks, and the addresses of their pools."""

    @call(reads=True)
    def list_networks(self, scope: Scope) -> tuple[Network, ...]:
        """Return the networks that the scope may use."""

    @call(reads=True)
    def get_network(self, uuid: str, scope: Scope) -> Network:
        """Return one network."""

    @call()
    def create_network(self, network: NewNetwork) -> tuple[Network, ...]:
        """Create networks and their pools of addresses. Raises Conflict if the range is used."""

    @call()
    def delete_network(self, uuid: str) -> None:
        """Delete a network. Raises Conflict while one of its addresses is in use, or it belongs to a project."""

    @call(since="1.3")
    def delete_own_network(self, uuid: str, project_id: str) -> None:
        """Delete a network of the project. Raises NotFound; Conflict while one of its addresses is in use."""

    @call(since="1.3")
    def change_network(self, change: NetworkChange) -> Network:
        """Change a network's project and host. Raises NotFound. NotSupported by a manager whose networks are shared by
        all."""

    @call(since="1.3")
    def add_network_to_project(self, uuid: str | None, project_id: str) -> Network:
        """Assign a network to a project: the given one, or any network without a project. Raises NotFound, Conflict and
        NotSupported."""

    @call(reads=True, since="1.3")
    def list_fixed_addresses(self, host: str | None) -> tuple[FixedAddressRow, ...]:
        """Return every address of every pool (of networks that a host serves). For nova-manage."""

    @call(reads=True, since="1.3")
    def get_fixed_address(self, address: str) -> FixedAddressRow:
        """Return one fixed address. Raises NotFound; Invalid if the text is not an address."""

    @call(since="1.3")
    def reserve_fixed_address(self, address: str, reserved: bool) -> None:
        """Reserve an address, which is then given to no server, or release it. Raises NotFound; Invalid if the text is
        not an address."""


class FloatingCalls:
    """Floating addresses."""

    @call(reads=True, since="1.3")
    def list_floating_pools(self, scope: Scope) -> tuple[FloatingPool, ...]:
        """Return the pools to allocate from."""

    @call(reads=True, since="1.3")
    def list_floating_addresses(self, query: FloatingQuery) -> tuple[FloatingAddress, ...]:
        """Return floating addresses, sorted by address."""

    @call(reads=True, since="1.3")
    def get_floating_address(self, id: str, scope: Scope) -> FloatingAddress:
        """Return one floating address. Raises NotFound; Invalid if the id is malformed."""

    @call(since="1.3")
    def allocate_floating_address(self, project_id: str, pool: str | None) -> FloatingAddress:
        """Allocate the next free address of a pool (default: the configured one). Raises NotFound if the pool is
        unknown or empty, and OverQuota."""

    @call(since="1.3")
    def release_floating_address(self, id: str, scope: Scope) -> None:
        """Return an address to its pool, after disassociating it from its server. Raises NotFound; Forbidden if it
        belongs to another project or was auto-assigned; Conflict."""

    @call(since="1.3")
    def associate_floating_address(self, association: FloatingAssociation) -> None:
        """Associate an address with a server, and disassociate it from another one. Raises NotFound for the address;
        Forbidden; Invalid if the server does not have that fixed address, or has none."""

    @call(since="1.3")
    def disassociate_floating_address(self, association: FloatingAssociation) -> None:
        """Disassociate an address. Raises NotFound for the address; Conflict if another server has it; Forbidden if it
        was auto-assigned."""

    @call(since="1.3")
    def create_floating_addresses(self, range: FloatingRange) -> tuple[str, ...]:
        """Create the addresses of a range. Raises Invalid for a bad range; Conflict if an address exists already."""

    @call(since="1.3")
    def delete_floating_addresses(self, range: FloatingRange) -> tuple[str, ...]:
        """Delete the unallocated addresses of a range, and return them. Raises Invalid for a bad range."""

    @call(reads=True, since="1.3")
    def list_dns_domains(self, scope: Scope) -> tuple[DnsDomain, ...]:
        """Return the domains registered in nova, for all users. Queries no DNS server."""

    @call(since="1.3")
    def put_dns_domain(self, domain: DnsDomain) -> DnsDomain:
        """Create or change a domain."""

    @call(since="1.3")
    def delete_dns_domain(self, domain: str) -> None:
        """Delete a domain with its entries. Raises NotFound."""

    @call(reads=True, since="1.3")
    def list_dns_entries(self, domain: str, name: str | None, address: str | None) -> tuple[DnsEntry, ...]:
        """Return entries by name or by address. Raises NotFound for the domain."""

    @call(since="1.3")
    def put_dns_entry(self, entry: DnsEntry) -> DnsEntry:
        """Create or change an entry. Raises NotFound for the domain; Invalid for a name or type."""

    @call(since="1.3")
    def delete_dns_entry(self, domain: str, name: str) -> None:
        """Delete an entry. Raises NotFound."""


class SecurityGroupCalls:
    """Security groups and their members."""

    @call(since="1.3")
    def list_security_groups(self, query: SecurityGroupQuery) -> tuple[SecurityGroup, ...]:
        """Return a page of groups with their rules. The first call for a project creates its default group."""

    @call(reads=True, since="1.3")
    def get_security_group(self, id: str, scope: Scope) -> SecurityGroup:
        """Return one group. Raises NotFound; Invalid if the id is malformed."""

    @call(since="1.3")
    def create_security_group(self, group: NewSecurityGroup) -> SecurityGroup:
        """Create a group. Raises Invalid if the name is taken, and OverQuota."""

    @call(since="1.3")
    def update_security_group(self, update: SecurityGroupUpdate) -> SecurityGroup:
        """Change a group. Raises NotFound; Invalid if the name is taken, or it is the default group."""

    @call(since="1.3")
    def delete_security_group(self, id: str, scope: Scope) -> None:
        """Delete a group. Raises NotFound; Invalid for the default group, or one in use."""

    @call(since="1.3")
    def create_security_rule(self, rule: NewSecurityRule, scope: Scope) -> SecurityRule:
        """Create a rule, and return it after the hosts were notified. Raises NotFound for the group or its source
        group; Invalid if the rule exists; OverQuota."""

    @call(since="1.3")
    def delete_security_rule(self, id: str, scope: Scope) -> None:
        """Delete a rule. Returns after the hosts were notified. Raises NotFound."""

    @call(reads=True, since="1.3")
    def list_default_rules(self) -> tuple[SecurityRule, ...]:
        """Return the rules of a new project's default group."""

    @call(reads=True, since="1.3")
    def get_default_rule(self, id: str) -> SecurityRule:
        """Return one default rule. Raises NotFound."""

    @call(since="1.3")
    def create_default_rule(self, rule: NewSecurityRule) -> SecurityRule:
        """Create a default rule. Raises Conflict if it exists."""

    @call(since="1.3")
    def delete_default_rule(self, id: str) -> None:
        """Delete a default rule. Raises NotFound."""

    @call(reads=True, since="1.3")
    def list_provider_rules(self) -> tuple[SecurityRule, ...]:
        """Return the traffic that every compute host drops, before the rules of any group. For nova-manage."""

    @call(since="1.3")
    def create_provider_rule(self, rule: NewSecurityRule) -> SecurityRule:
        """Create a provider rule. Returns after the hosts were notified. Raises Conflict if it exists."""

    @call(since="1.3")
    def delete_provider_rule(self, id: str) -> None:
        """Delete a provider rule. Returns after the hosts were notified. Raises NotFound."""

    @call(reads=True, since="1.3")
    def list_server_security_groups(self, query: ServerQuery) -> tuple[SecurityGroup, ...]:
        """Return the groups of one server. Raises NotFound outside the scope."""

    @call(since="1.3")
    def change_group_membership(self, change: GroupMembership) -> None:
        """Add a server to a group, or remove it. Raises NotFound for the server or group, or if the server is not in
        it. Raises Conflict if several groups have the name; Invalid if the server is in it already."""


class InterfaceCalls:
    """Servers' interfaces, which can be attached and detached while the servers run."""

    @call(reads=True, since="1.3")
    def list_interfaces(self, query: ServerQuery) -> tuple[Interface, ...]:
        """Return the interfaces as the network service has them now. Raises NotFound outside the scope."""

    @call(since="1.3")
    def attach_interface(self, server_uuid: str, wish: RequestedNetwork) -> Interface:
        """Attach an interface. Returns after it is plugged into the guest. Raises NotFound for the network or port;
        Invalid; Conflict if the port is in use or no address is free; WrongState; OverQuota; Unavailable."""

    @call(since="1.3")
    def detach_interface(self, server_uuid: str, interface_id: str) -> None:
        """Begin to detach an interface. Raises NotFound if the server has no such interface, and WrongState."""

    @call(since="1.3")
    def add_fixed_address(self, server_uuid: str, network_id: str) -> None:
        """Add an address of a network. Raises Invalid for an unknown network; Conflict if none is free; OverQuota."""

    @call(since="1.3")
    def remove_fixed_address(self, server_uuid: str, address: str) -> None:
        """Remove an address. Raises Invalid if the server has no such address."""


class CloudpipeCalls:
    """VPN servers of projects."""

    @call(reads=True, since="1.3")
    def list_cloudpipes(self) -> tuple[Cloudpipe, ...]:
        """Return the VPN servers, one per project that has one."""

    @call(since="1.3")
    def create_cloudpipe(self, project_id: str) -> str:
        """Return the uuid of the project's VPN server: the existing one, or a new one. Raises Invalid if the cloud has
        no image or flavor for it, or the project has no network with a free address for it. Raises Unavailable for
        nova-cert."""

    @call(since="1.3")
    def configure_vpn(self, project_id: str, address: str, port: int) -> None:
        """Set the public address of a project's VPN for its clients. Raises NotFound if the project has no network;
        Invalid for the address or port."""


class AllNetworkCalls(NetworkCalls, FloatingCalls, SecurityGroupCalls, InterfaceCalls, CloudpipeCalls):
    """All network calls of the conductor."""
