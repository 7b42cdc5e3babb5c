"""Security groups of Neutron, as the Compute API shows and changes them: ingress rules only; egress rules are
hidden."""

from __future__ import annotations

import ipaddress
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from nova import context, errors, failures
from nova.clients.neutron import Neutron
from nova.conductor.engine.deps import Deps
from nova.conductor.neutron.proxies.asking import is_id, known_id, ports_of, server_row, translated_errors
from nova.model.base import Page, Scope
from nova.model.network.ports import NeutronGroup, NeutronRule, Port
from nova.model.network.security_groups import (
    GroupMembership,
    NewSecurityGroup,
    NewSecurityRule,
    SecurityGroup,
    SecurityGroupQuery,
    SecurityGroupUpdate,
    SecurityRule,
)
from nova.model.server.servers import ServerQuery

TRIES = 4  # writes of a port that others change too
ANY = -1  # any port or ICMP type
ALL_PORTS = {"tcp": (1, 65535), "udp": (1, 65535)}
ICMP_V6 = frozenset({"icmpv6", "ipv6-icmp", "icmp"})
ANYWHERE = {"IPv4": "0.0.0.0/0", "IPv6": "::/0"}


class GroupsByNeutron:
    """The calls of SecurityGroupCalls that Neutron supports; default rules are not among them."""

    def __init__(self, deps: Deps, client: Neutron, changed: Callable[[str], None] = lambda uuid: None) -> None:
        self._world, self._client, self._changed = deps, client, changed

    # -- groups

    def list_security_groups(self, query: SecurityGroupQuery) -> tuple[SecurityGroup, ...]:
        """Return security groups in Neutron's order; paging is done here. ``names``: only these groups."""
        filters: dict[str, Any] = {"project_id": query.scope.project_id} if query.scope.project_id else {}
        if query.names:
            filters["name"] = list(query.names)
        return self._shown(_slice(self._client.security_groups(filters, as_user=True), query.page))

    def get_security_group(self, id: str, scope: Scope) -> SecurityGroup:
        """Return one security group. Raises network.BadId; network.Absent, also outside the scope."""
        return self._shown([self._own(id, scope)])[0]

    def create_security_group(self, group: NewSecurityGroup) -> SecurityGroup:
        """Create a group in the project of the user's token. Raises network.Refused with Neutron's reason;
        OverQuota."""
        with translated_errors("Security group", group.name):
            made = self._client.create_security_group(name=group.name, description=group.description)
        return self._shown([made])[0]

    def update_security_group(self, update: SecurityGroupUpdate) -> SecurityGroup:
        """Update a group; None leaves a value unchanged. Raises network.BadId; network.Absent, also outside the scope;
        network.Refused."""
        group = self._own(update.id, update.scope)
        fields: dict[str, Any] = {"name": update.name, "description": update.description}
        with translated_errors("Security group", update.id):
            changed = self._client.update_security_group(
                group.id, **{name: value for name, value in fields.items() if value is not None})
        return self._shown([changed])[0]

    def delete_security_group(self, id: str, scope: Scope) -> None:
        """Delete a group. Raises network.BadId; network.Absent, also outside the scope; network.Refused while it is in
        use."""
        group = self._own(id, scope)
        with translated_errors("Security group", id):
            self._client.delete_security_group(group.id)

    # -- rules

    def create_security_rule(self, rule: NewSecurityRule, scope: Scope) -> SecurityRule:
        """Create an ingress rule. Raises network.BadId; network.Absent for the group (also outside the scope) or its
        source; network.Refused if the rule exists, or its range is invalid."""
        group = self._own(rule.group_id, scope)
        fields: dict[str, Any] = _fields(rule)
        if rule.source_id:
            fields["remote_group_id"] = known_id(rule.source_id, "Security group")
        with translated_errors("Security group", rule.source_id or rule.group_id):
            made = self._client.create_security_rule(security_group_id=group.id, direction="ingress", **fields)
        return _rule(made, self._sources([made]))

    def delete_security_rule(self, id: str, scope: Scope) -> None:
        """Delete a rule; Neutron checks its owner by the user's token. Raises network.BadId, network.Absent."""
        with translated_errors("Security group rule", id, errors.service.Conflict):
            self._client.delete_security_rule(known_id(id, "Security group rule"))

    # -- servers

    def list_server_security_groups(self, query: ServerQuery) -> tuple[SecurityGroup, ...]:
        """Return the groups of all the server's ports, by name. Raises server.NotFound outside the scope."""
        row = server_row(self._world, query.uuid, query.scope)
        ids = {id for port in ports_of(self._client, row) for id in port.security_group_ids}
        return self._shown(sorted(self._client.security_groups_by_id(ids), key=lambda one: (one.name, one.id)))

    def change_group_membership(self, change: GroupMembership) -> None:
        """Add or remove a group on all the server's ports that are filtered. Joining a group twice is not an error.
        Raises network.Absent, network.GroupAmbiguous; security_group.NoPort, security_group.NotAMember."""
        row = server_row(self._world, change.server_uuid)
        group = self._find(change.group, change.member, row.project_id)
        ports = [port for port in ports_of(self._client, row) if _guarded(port)]
        if change.member:
            self._join(group, ports, change)
        else:
            self._leave(group, ports, change)
        self._changed(change.server_uuid)

    def _join(self, group: NeutronGroup, ports: Sequence[Port], change: GroupMembership) -> None:
        if not ports:
            raise errors.security_group.NoPort(server=change.server_uuid)
        for port in ports:
            self._write(port, lambda now: (*(one for one in now if one != group.id), group.id))

    def _leave(self, group: NeutronGroup, ports: Sequence[Port], change: GroupMembership) -> None:
        inside = [port for port in ports if group.id in port.security_group_ids]
        if not inside:
            raise errors.security_group.NotAMember(name=change.group, server=change.server_uuid)
        for port in inside:
            self._write(port, lambda now: tuple(one for one in now if one != group.id))

    def _write(self, port: Port, wanted: Callable[[Sequence[str]], tuple[str, ...]]) -> None:
        """Update a port's groups. A port that another user changed meanwhile is read again, so that neither change is
        lost."""
        for left in reversed(range(TRIES)):
            groups = wanted(port.security_group_ids)
            if groups == port.security_group_ids:
                return
            try:
                with translated_errors("Port", port.id, errors.service.Conflict):
                    self._client.update_port(port.id, {"security_groups": list(groups)}, if_match=port.revision,
                                             as_user=True)
                return
            except errors.service.Conflict:
                if not left:
                    raise
                port = self._client.port(port.id)

    # -- internals

    def _own(self, id: str, scope: Scope) -> NeutronGroup:
        with translated_errors("Security group", id):
            found: NeutronGroup = self._client.security_group(known_id(id, "Security group"), as_user=True)
        if scope.project_id not in (None, found.project_id):
            raise errors.network.Absent(what="Security group", id=id)
        return found

    def _find(self, named: str, member: bool, project: str) -> NeutronGroup:
        """Return a group by ID, or by a name in the caller's project (for an administrator: in the server's)."""
        if is_id(named):
            found = self._client.security_groups({"id": named}, as_user=True)
            if found:
                by_id: NeutronGroup = found[0]
                return by_id
        whose = context.current().project_id or project
        found = self._client.security_groups({"name": named, "project_id": whose}, as_user=True)
        if not found:
            raise errors.network.Absent(what="Security group", id=named)
        if len(found) > 1:
            raise errors.network.GroupAmbiguous(name=named)
        only: NeutronGroup = found[0]
        return only

    def _shown(self, groups: Sequence[NeutronGroup]) -> tuple[SecurityGroup, ...]:
        """Return the groups with their rules; the names of all sources are read in one call."""
        known = self._sources([rule for group in groups for rule in group.rules],
                              {group.id: group for group in groups})
        return tuple(SecurityGroup(
            id=group.id, name=group.name, project_id=group.project_id, description=group.description,
            rules=tuple(_rule(one, known) for one in group.rules if one.direction == "ingress")) for group in groups)

    def _sources(self, rules: Sequence[NeutronRule], known: Mapping[str, NeutronGroup] | None = None
                 ) -> Mapping[str, NeutronGroup]:
        known = known or {}
        others = {rule.remote_group_id for rule in rules
                  if rule.remote_group_id and rule.direction == "ingress"} - set(known)
        if not others:
            return known
        return {**known, **{one.id: one for one in self._client.security_groups_by_id(
            [id for id in others if id], ("id", "name", "project_id"))}}


def _guarded(port: Port) -> bool:
    """True if security groups apply to the port. An address that is assigned later (with its host) counts."""
    return port.port_security and (bool(port.addresses) or port.ip_allocation == "deferred")


def _slice(found: Sequence[NeutronGroup], page: Page) -> Sequence[NeutronGroup]:
    end = None if page.limit is None else page.offset + page.limit
    return found[page.offset:end]


def _rule(rule: NeutronRule, sources: Mapping[str, NeutronGroup]) -> SecurityRule:
    ports = rule.port_from, rule.port_to
    if rule.protocol and ports == (None, None):
        ports = ALL_PORTS.get(rule.protocol, (ANY, ANY))
    source = sources.get(rule.remote_group_id or "")
    cidr = None if rule.remote_group_id else rule.remote_prefix or ANYWHERE.get(rule.ethertype)
    return SecurityRule(
        id=rule.id, group_id=rule.group_id, protocol=rule.protocol, from_port=ports[0], to_port=ports[1], cidr=cidr,
        source_id=rule.remote_group_id, source_name=source.name if source else None,
        source_project_id=source.project_id if source else None)


def _fields(rule: NewSecurityRule) -> dict[str, object]:
    """Return a new rule with Neutron's field names. Raises network.Refused for an invalid range."""
    with failures.translated(ValueError, lambda _: errors.network.Refused(reason=f"Invalid cidr {rule.cidr}.")):
        version = ipaddress.ip_network(rule.cidr, strict=False).version if rule.cidr else 4
    fields = {"ethertype": f"IPv{version}", "remote_ip_prefix": rule.cidr, "protocol": _protocol(rule, version),
              "port_range_min": _port(rule.from_port), "port_range_max": _port(rule.to_port)}
    return {name: value for name, value in fields.items() if value is not None}


def _protocol(rule: NewSecurityRule, version: int) -> str | None:
    translated_errors = rule.protocol.lower() if rule.protocol else None
    return "ipv6-icmp" if version == 6 and translated_errors in ICMP_V6 else translated_errors


def _port(number: int | None) -> int | None:
    return None if number in (None, ANY) else number
