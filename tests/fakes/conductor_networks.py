"""Parts of the fake conductor: networks, servers' interfaces, floating addresses and their names, security groups."""

from __future__ import annotations

import uuid
from typing import Any

from nova import context, errors
from nova.model.base import Scope
from nova.model.network import address_ranges, security_rules
from nova.model.network.floating import FloatingPool
from nova.model.network.networks import FixedAddress, Interface
from nova.model.network.security_groups import DEFAULT, SecurityGroup, SecurityGroupQuery, SecurityRule
from tests.fakes.shelves import EVERYTHING, first, held, page, replace, visible

PORT = Interface(
    id="ce531f90-199f-48c0-816c-13e38010b442", mac="fa:16:3e:4c:2c:30", label="private",
    network_id="3cb9bc59-5699-4588-a4b1-b87f96708bc6", status="ACTIVE", tag="public",
    addresses=(FixedAddress(address="192.168.1.3", subnet_id="f8a6e8f8-c2ec-497c-9f23-da9616de54ef"),))


class Networks:
    def list_networks(self: Any, scope: Any) -> Any:
        return tuple(network for network in self.networks.values()
                     if scope.project_id is None or network.project_id in (None, scope.project_id))

    def get_network(self: Any, uuid: Any, scope: Any) -> Any:
        return first((one for one in Networks.list_networks(self, scope) if one.uuid == uuid), f"Network {uuid}")

    def create_network(self: Any, network: Any) -> Any:
        fields = {name: getattr(network, name) for name in ("label", "cidr", "cidr_v6", "bridge", "project_id", "mtu")}
        return tuple(self.add_network(**fields) for _ in range(network.num_networks))

    def delete_network(self: Any, uuid: Any) -> None:
        del self.networks[Networks.get_network(self, uuid, EVERYTHING).uuid]

    def delete_own_network(self: Any, uuid: Any, project_id: Any) -> None:
        del self.networks[Networks.get_network(self, uuid, Scope(project_id=project_id)).uuid]

    def _change_network(self: Any, uuid: str, **fields: Any) -> Any:
        self.networks[uuid] = replace(Networks.get_network(self, uuid, EVERYTHING), **fields)
        return self.networks[uuid]

    def change_network(self: Any, change: Any) -> Any:
        return self._change_network(change.uuid, **{name: getattr(change, name) for name in change.fields})

    def add_network_to_project(self: Any, uuid: Any, project_id: Any) -> Any:
        free = first((one for one in self.networks.values() if one.project_id is None and uuid in (None, one.uuid)),
                     f"Network {uuid}")
        return self._change_network(free.uuid, project_id=project_id)

    def list_fixed_addresses(self: Any, host: Any) -> Any:
        return tuple(row for row in self.fixed_rows.values() if host in (None, row.host))

    def get_fixed_address(self: Any, address: Any) -> Any:
        return held(self.fixed_rows, address, "Fixed IP")

    def reserve_fixed_address(self: Any, address: Any, reserved: Any) -> None:
        self.fixed_rows[address] = replace(Networks.get_fixed_address(self, address), reserved=reserved)


class Interfaces:
    """Servers' interfaces, which are attached and detached immediately."""

    def list_interfaces(self: Any, query: Any) -> Any:
        return tuple(self._find(query.uuid, query.scope).interfaces)

    def attach_interface(self: Any, server_uuid: Any, wish: Any) -> Any:
        server = self._find(server_uuid)
        if any(one.id == wish.port_id for one in server.interfaces):
            raise errors.Conflict(f"Port {wish.port_id} is still in use.")
        made = replace(PORT, id=wish.port_id or PORT.id, network_id=wish.network_id or PORT.network_id, tag=wish.tag)
        self._change(server, interfaces=(*server.interfaces, made))
        return made

    def detach_interface(self: Any, server_uuid: Any, interface_id: Any) -> None:
        server = self._find(server_uuid)
        first((one for one in server.interfaces if one.id == interface_id), f"Interface {interface_id}")
        self._change(server, interfaces=tuple(one for one in server.interfaces if one.id != interface_id))

    def add_fixed_address(self: Any, server_uuid: Any, network_id: Any) -> None:
        self._find(server_uuid)

    def remove_fixed_address(self: Any, server_uuid: Any, address: Any) -> None:
        self._find(server_uuid)


class Floating:
    def _owned(self: Any, address: str) -> Any:
        found = first((one for one in self.floating.values() if one.address == address and one.project_id),
                      f"Floating IP {address}")
        who = context.current()
        if not who.is_admin and who.project_id != found.project_id:
            raise errors.Forbidden("It is another project's.")
        return found

    def _change_floating(self: Any, found: Any, **fields: Any) -> Any:
        self.floating[found.address] = replace(found, **fields)
        return self.floating[found.address]

    def list_floating_pools(self: Any, scope: Any) -> Any:
        return tuple(FloatingPool(name=name) for name in sorted({one.pool for one in self.floating.values()}))

    def list_floating_addresses(self: Any, query: Any) -> Any:
        return tuple(one for one in visible(self.floating.values(), query.scope)
                     if (query.all_rows or one.project_id) and query.host in (None, one.host))

    def get_floating_address(self: Any, id: Any, scope: Any) -> Any:
        if not id.isdigit():
            raise errors.Invalid(f"Invalid ID received {id}.")
        return first((one for one in visible(self.floating.values(), scope) if one.id == id and one.project_id),
                     f"Floating IP {id}")

    def allocate_floating_address(self: Any, project_id: Any, pool: Any) -> Any:
        free = first((one for one in self.floating.values() if one.project_id is None and one.pool == (pool or "nova")),
                     f"A free floating IP in pool {pool}")
        return self._change_floating(free, project_id=project_id)

    def release_floating_address(self: Any, id: Any, scope: Any) -> None:
        found = Floating.get_floating_address(self, id, EVERYTHING)
        if scope.project_id not in (None, found.project_id):
            raise errors.Forbidden("It is another project's.")
        self._change_floating(found, project_id=None, server_uuid=None, fixed_address=None)

    def associate_floating_address(self: Any, association: Any) -> None:
        self._change_floating(self._owned(association.address), server_uuid=association.server_uuid,
                              fixed_address=association.fixed_address or "10.0.0.3")

    def disassociate_floating_address(self: Any, association: Any) -> None:
        found = self._owned(association.address)
        if found.server_uuid != association.server_uuid:
            raise errors.Conflict(f"Floating IP {found.address} is not associated with the instance.")
        self._change_floating(found, server_uuid=None, fixed_address=None)

    def create_floating_addresses(self: Any, range: Any) -> Any:
        addresses = address_ranges.usable(range.ip_range)
        if {*addresses} & self.floating.keys():
            raise errors.Conflict(f"A floating IP of {range.ip_range} already exists.")
        for address in addresses:
            self.add_floating(address, range.pool or "nova", interface=range.interface)
        return addresses

    def delete_floating_addresses(self: Any, range: Any) -> Any:
        gone = tuple(one for one in address_ranges.usable(range.ip_range)
                     if one in self.floating and self.floating[one].project_id is None)
        for one in gone:
            del self.floating[one]
        return gone

    def list_dns_domains(self: Any, scope: Any) -> Any:
        return tuple(one for one in self.domains.values()
                     if scope.project_id is None or one.project_id in (None, scope.project_id))

    def put_dns_domain(self: Any, domain: Any) -> Any:
        self.domains[domain.domain] = domain
        return domain

    def delete_dns_domain(self: Any, domain: Any) -> None:
        del self.domains[held(self.domains, domain, "The DNS domain").domain]

    def list_dns_entries(self: Any, domain: Any, name: Any, address: Any) -> Any:
        return tuple(one for one in self.dns_entries.values() if one.domain == domain
                     and name in (None, one.name) and address in (None, one.address))

    def put_dns_entry(self: Any, entry: Any) -> Any:
        self.dns_entries[entry.domain, entry.name] = entry
        return entry

    def delete_dns_entry(self: Any, domain: Any, name: Any) -> None:
        held(self.dns_entries, (domain, name), "The DNS entry")
        del self.dns_entries[domain, name]


class SecurityGroups:
    """Security groups; their ids are uuids, as in Neutron."""

    def list_security_groups(self: Any, query: Any) -> Any:
        project = query.scope.project_id
        known = {(one.project_id, one.name) for one in self.security_groups.values()}
        if project and (project, DEFAULT) not in known:
            self._keep(SecurityGroup(id=str(uuid.uuid4()), name=DEFAULT, description=DEFAULT, project_id=project))
        return page(visible(self.security_groups.values(), query.scope), query.page)

    def get_security_group(self: Any, id: Any, scope: Any) -> Any:
        try:
            uuid.UUID(id)
        except ValueError:
            raise errors.Invalid(f"Security group id should be uuid, not {id}") from None
        return held(self.security_groups, id, "Security group", scope)

    def create_security_group(self: Any, group: Any) -> Any:
        if any(one.name == group.name and one.project_id == group.project_id for one in self.security_groups.values()):
            raise errors.Invalid(f"Security group {group.name} already exists.")
        return self._keep(SecurityGroup(id=str(uuid.uuid4()), name=group.name, description=group.description,
                                        project_id=group.project_id))

    def update_security_group(self: Any, update: Any) -> Any:
        group = self._changeable(update.id, update.scope)
        return self._keep(replace(group, name=update.name or group.name, description=update.description or ""))

    def delete_security_group(self: Any, id: Any, scope: Any) -> None:
        del self.security_groups[self._changeable(id, scope).id]

    def create_security_rule(self: Any, rule: Any, scope: Any) -> Any:
        group, rule = SecurityGroups.get_security_group(self, rule.group_id, scope), security_rules.checked(rule)
        source = SecurityGroups.get_security_group(self, rule.source_id, scope) if rule.source_id else None
        if any(security_rules.same(one, rule) for one in group.rules):
            raise errors.Invalid("This rule already exists.")
        made = _rule(str(uuid.uuid4()), rule, group_id=group.id, source_id=rule.source_id,
                     source_name=source and source.name, source_project_id=source and source.project_id)
        self._keep(replace(group, rules=(*group.rules, made)))
        return made

    def delete_security_rule(self: Any, id: Any, scope: Any) -> None:
        group = first((one for one in visible(self.security_groups.values(), scope)
                       if any(rule.id == id for rule in one.rules)), f"Security group rule {id}")
        self._keep(replace(group, rules=tuple(rule for rule in group.rules if rule.id != id)))

    def list_default_rules(self: Any) -> Any:
        return tuple(self.default_rules.values())

    def get_default_rule(self: Any, id: Any) -> Any:
        return held(self.default_rules, id, "Security group default rule")

    def create_default_rule(self: Any, rule: Any) -> Any:
        wanted = replace(security_rules.checked(rule), protocol=rule.protocol)
        if any(security_rules.same(one, wanted) for one in self.default_rules.values()):
            raise errors.Conflict("This default rule already exists.")
        id = str(len(self.default_rules) + 1)
        self.default_rules[id] = _rule(id, wanted)
        return self.default_rules[id]

    def delete_default_rule(self: Any, id: Any) -> None:
        del self.default_rules[SecurityGroups.get_default_rule(self, id).id]

    def create_provider_rule(self: Any, rule: Any) -> Any:
        return _rule("1", security_rules.checked(rule))

    def list_server_security_groups(self: Any, query: Any) -> Any:
        server = self._find(query.uuid, query.scope)
        return tuple(group for group in self._groups_of(server) if group.name in server.security_groups)

    def _groups_of(self: Any, server: Any) -> Any:
        return SecurityGroups.list_security_groups(self, SecurityGroupQuery(scope=Scope(project_id=server.project_id)))

    def change_group_membership(self: Any, change: Any) -> None:
        server = self._find(change.server_uuid)
        group = first((one for one in self._groups_of(server) if change.group in (one.name, one.id)
                       and (change.member or one.name in server.security_groups)), f"Security group {change.group}")
        if change.member and group.name in server.security_groups:
            raise errors.Invalid("The server is in it already.")
        others = [name for name in server.security_groups if name != group.name]
        self._change(server, security_groups=(*others, *((group.name,) if change.member else ())))

    def _changeable(self: Any, id: Any, scope: Any) -> Any:
        group = SecurityGroups.get_security_group(self, id, scope)
        if group.name == DEFAULT:
            raise errors.Invalid("Unable to change system group 'default'")
        return group

    def _keep(self: Any, group: Any) -> Any:
        self.security_groups[group.id] = group
        return group


def _rule(id: str, rule: Any, **fields: Any) -> SecurityRule:
    return SecurityRule(**{"id": id, "group_id": "", "protocol": rule.protocol, "cidr": rule.cidr,
                           "from_port": rule.from_port, "to_port": rule.to_port, **fields})
