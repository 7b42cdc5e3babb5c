"""The part of ``ConductorRPC`` that is about networks, floating addresses, security groups and servers' interfaces.

What nova-network has in its own database and what Neutron has next door are asked for by the same calls; one that a
back end has no word for is NotSupported.
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
        """Networks the scope may use."""

    @call(reads=True)
    def get_network(self, uuid: str, scope: Scope) -> Network:
        """One network."""

    @call()
    def create_network(self, network: NewNetwork) -> tuple[Network, ...]:
        """Make networks and their pool of addresses. Conflict: the range is used."""

    @call()
    def delete_network(self, uuid: str) -> None:
        """Conflict while an address of it is in use, or it is a project's."""

    @call(since="1.3")
    def delete_own_network(self, uuid: str, project_id: str) -> None:
        """A network of the project. NotFound; Conflict while an address of it is in use."""

    @call(since="1.3")
    def change_network(self, change: NetworkChange) -> Network:
        """Whose it is and who serves it. NotFound. NotSupported: a manager whose networks are everybody's."""

    @call(since="1.3")
    def add_network_to_project(self, uuid: str | None, project_id: str) -> Network:
        """Give a project a network of its own: that one, or any network without a project. NotFound; Conflict;
        NotSupported."""

    @call(reads=True, since="1.3")
    def list_fixed_addresses(self, host: str | None) -> tuple[FixedAddressRow, ...]:
        """Every address of every pool (of networks that a host serves). For nova-manage."""

    @call(reads=True, since="1.3")
    def get_fixed_address(self, address: str) -> FixedAddressRow:
        """NotFound; Invalid: it is no address."""

    @call(since="1.3")
    def reserve_fixed_address(self, address: str, reserved: bool) -> None:
        """A reserved one is given to no server. NotFound; Invalid: it is no address."""


class FloatingCalls:
    """Floating addresses."""

    @call(reads=True, since="1.3")
    def list_floating_pools(self, scope: Scope) -> tuple[FloatingPool, ...]:
        """Pools to allocate from."""

    @call(reads=True, since="1.3")
    def list_floating_addresses(self, query: FloatingQuery) -> tuple[FloatingAddress, ...]:
        """By address."""

    @call(reads=True, since="1.3")
    def get_floating_address(self, id: str, scope: Scope) -> FloatingAddress:
        """NotFound. Invalid: no such id can be."""

    @call(since="1.3")
    def allocate_floating_address(self, project_id: str, pool: str | None) -> FloatingAddress:
        """The next free one of a pool (the configured one). NotFound: pool unknown, or empty. OverQuota."""

    @call(since="1.3")
    def release_floating_address(self, id: str, scope: Scope) -> None:
        """Back to its pool; taken from its server first, where it has one. NotFound; Forbidden: another project's, or
        assigned by itself; Conflict."""

    @call(since="1.3")
    def associate_floating_address(self, association: FloatingAssociation) -> None:
        """Give it to a server (taken from another that had it). NotFound: address; Forbidden; Invalid: the server has
        no such fixed address, or none."""

    @call(since="1.3")
    def disassociate_floating_address(self, association: FloatingAssociation) -> None:
        """NotFound: address. Conflict: it is not this server's. Forbidden: assigned by itself."""

    @call(since="1.3")
    def create_floating_addresses(self, range: FloatingRange) -> tuple[str, ...]:
        """Invalid: a bad range; Conflict: an address is there already."""

    @call(since="1.3")
    def delete_floating_addresses(self, range: FloatingRange) -> tuple[str, ...]:
        """Those of the range that nobody has. Invalid: a bad range."""

    @call(reads=True, since="1.3")
    def list_dns_domains(self, scope: Scope) -> tuple[DnsDomain, ...]:
        """The domains that were registered here, whoever uses them. No DNS server is asked."""

    @call(since="1.3")
    def put_dns_domain(self, domain: DnsDomain) -> DnsDomain:
        """Make or change a domain."""

    @call(since="1.3")
    def delete_dns_domain(self, domain: str) -> None:
        """With its entries. NotFound."""

    @call(reads=True, since="1.3")
    def list_dns_entries(self, domain: str, name: str | None, address: str | None) -> tuple[DnsEntry, ...]:
        """By name or by address. NotFound: the domain."""

    @call(since="1.3")
    def put_dns_entry(self, entry: DnsEntry) -> DnsEntry:
        """Make or change one. NotFound: the domain. Invalid: a name or type."""

    @call(since="1.3")
    def delete_dns_entry(self, domain: str, name: str) -> None:
        """NotFound."""


class SecurityGroupCalls:
    """Security groups, and who is in them."""

    @call(since="1.3")
    def list_security_groups(self, query: SecurityGroupQuery) -> tuple[SecurityGroup, ...]:
        """A page of groups with their rules; a project's default group is made by its first look."""

    @call(reads=True, since="1.3")
    def get_security_group(self, id: str, scope: Scope) -> SecurityGroup:
        """NotFound. Invalid: no such id can be."""

    @call(since="1.3")
    def create_security_group(self, group: NewSecurityGroup) -> SecurityGroup:
        """Invalid: the name is taken. OverQuota."""

    @call(since="1.3")
    def update_security_group(self, update: SecurityGroupUpdate) -> SecurityGroup:
        """NotFound. Invalid: the name is taken, or it is the default group."""

    @call(since="1.3")
    def delete_security_group(self, id: str, scope: Scope) -> None:
        """NotFound. Invalid: the default group, or one in use."""

    @call(since="1.3")
    def create_security_rule(self, rule: NewSecurityRule, scope: Scope) -> SecurityRule:
        """NotFound: the group, or its source. Invalid: it is there. OverQuota. Answered when it was said to the
        hosts."""

    @call(since="1.3")
    def delete_security_rule(self, id: str, scope: Scope) -> None:
        """NotFound. Answered when it was said to the hosts."""

    @call(reads=True, since="1.3")
    def list_default_rules(self) -> tuple[SecurityRule, ...]:
        """What a new project's default group has."""

    @call(reads=True, since="1.3")
    def get_default_rule(self, id: str) -> SecurityRule:
        """NotFound."""

    @call(since="1.3")
    def create_default_rule(self, rule: NewSecurityRule) -> SecurityRule:
        """Conflict: it is there."""

    @call(since="1.3")
    def delete_default_rule(self, id: str) -> None:
        """NotFound."""

    @call(reads=True, since="1.3")
    def list_provider_rules(self) -> tuple[SecurityRule, ...]:
        """What every compute host drops, whatever groups say. For nova-manage."""

    @call(since="1.3")
    def create_provider_rule(self, rule: NewSecurityRule) -> SecurityRule:
        """Conflict: it is there. Answered when it was said to the hosts."""

    @call(since="1.3")
    def delete_provider_rule(self, id: str) -> None:
        """NotFound. Answered when it was said to the hosts."""

    @call(reads=True, since="1.3")
    def list_server_security_groups(self, query: ServerQuery) -> tuple[SecurityGroup, ...]:
        """The groups of one server. NotFound outside the scope."""

    @call(since="1.3")
    def change_group_membership(self, change: GroupMembership) -> None:
        """NotFound: server or group, or the server is not in it. Conflict: several groups of the name. Invalid: it is
        in it already."""


class InterfaceCalls:
    """Servers' interfaces, plugged in and out while they live."""

    @call(reads=True, since="1.3")
    def list_interfaces(self, query: ServerQuery) -> tuple[Interface, ...]:
        """As the network service has them now. NotFound outside the scope."""

    @call(since="1.3")
    def attach_interface(self, server_uuid: str, wish: RequestedNetwork) -> Interface:
        """Plugged into the guest when it is answered. NotFound: network or port. Invalid, Conflict (the port is in
        use, no address is left), WrongState, OverQuota, Unavailable."""

    @call(since="1.3")
    def detach_interface(self, server_uuid: str, interface_id: str) -> None:
        """Begun when it is answered. NotFound: the server has no such interface. WrongState."""

    @call(since="1.3")
    def add_fixed_address(self, server_uuid: str, network_id: str) -> None:
        """One more address of a network. Invalid: no such network. Conflict: none is left. OverQuota."""

    @call(since="1.3")
    def remove_fixed_address(self, server_uuid: str, address: str) -> None:
        """Invalid: the server has no such address."""


class CloudpipeCalls:
    """Projects' VPN servers."""

    @call(reads=True, since="1.3")
    def list_cloudpipes(self) -> tuple[Cloudpipe, ...]:
        """One of each project that has one."""

    @call(since="1.3")
    def create_cloudpipe(self, project_id: str) -> str:
        """The uuid of the project's VPN server: the one it has, or a new one. Invalid: this cloud has no image or
        flavor for it, or the project no network with a place for it. Unavailable: nova-cert."""

    @call(since="1.3")
    def configure_vpn(self, project_id: str, address: str, port: int) -> None:
        """Where the clients of a project's VPN find it. NotFound: the project has no network. Invalid: address,
        port."""


class AllNetworkCalls(NetworkCalls, FloatingCalls, SecurityGroupCalls, InterfaceCalls, CloudpipeCalls):
    """The whole part."""
