"""The fake conductor's part for security groups: ids are uuids, as Neutron's are."""

from __future__ import annotations

import uuid
from typing import Any

import msgspec

from nova import errors
from nova.model import security_rules
from nova.model.base import Scope
from nova.model.security_groups import (
    DEFAULT,
    GroupMembership,
    NewSecurityGroup,
    NewSecurityRule,
    SecurityGroup,
    SecurityGroupQuery,
    SecurityGroupUpdate,
    SecurityRule,
)
from nova.model.servers import ServerQuery

replace = msgspec.structs.replace


class SecurityGroupsOfFake:
    """Beside Servers, whose ``servers`` show the groups' names. ``most_security_groups``: the quota."""

    servers: dict[str, Any]
    _find: Any

    def __init__(self) -> None:
        super().__init__()
        self.security_groups: dict[str, SecurityGroup] = {}
        self.default_rules: dict[str, SecurityRule] = {}
        self.most_security_groups = 10_000

    def list_security_groups(self, query: SecurityGroupQuery) -> tuple[SecurityGroup, ...]:
        project = query.scope.project_id
        known = {(one.project_id, one.name) for one in self.security_groups.values()}
        if project and (project, DEFAULT) not in known:
            self._keep(SecurityGroup(id=str(uuid.uuid4()), name=DEFAULT, description=DEFAULT, project_id=project))
        held = [one for one in self.security_groups.values() if project in (None, one.project_id)][query.page.offset:]
        return tuple(held if query.page.limit is None else held[:query.page.limit])

    def get_security_group(self, id: str, scope: Scope) -> SecurityGroup:
        try:
            uuid.UUID(id)
        except ValueError:
            raise errors.Invalid(f"Security group id should be uuid, not {id}") from None
        group = self.security_groups.get(id)
        if group is None or scope.project_id not in (None, group.project_id):
            raise errors.NotFound(f"Security group {id} not found.")
        return group

    def create_security_group(self, group: NewSecurityGroup) -> SecurityGroup:
        if len(self.security_groups) >= self.most_security_groups:
            raise errors.OverQuota("Quota exceeded, too many security groups.")
        if any(one.name == group.name and one.project_id == group.project_id for one in self.security_groups.values()):
            raise errors.Invalid(f"Security group {group.name} already exists.")
        return self._keep(SecurityGroup(id=str(uuid.uuid4()), name=group.name, description=group.description,
                                        project_id=group.project_id))

    def update_security_group(self, update: SecurityGroupUpdate) -> SecurityGroup:
        group = self._changeable(update.id, update.scope)
        return self._keep(replace(group, name=update.name or group.name, description=update.description or ""))

    def delete_security_group(self, id: str, scope: Scope) -> None:
        del self.security_groups[self._changeable(id, scope).id]

    def create_security_rule(self, rule: NewSecurityRule, scope: Scope) -> SecurityRule:
        group, rule = self.get_security_group(rule.group_id, scope), security_rules.checked(rule)
        source = self.get_security_group(rule.source_id, scope) if rule.source_id else None
        if any(security_rules.same(one, rule) for one in group.rules):
            raise errors.Invalid("This rule already exists.")
        made = SecurityRule(
            id=str(uuid.uuid4()), group_id=group.id, protocol=rule.protocol, from_port=rule.from_port,
            to_port=rule.to_port, cidr=rule.cidr, source_id=rule.source_id, source_name=source and source.name,
            source_project_id=source and source.project_id)
        self._keep(replace(group, rules=(*group.rules, made)))
        return made

    def delete_security_rule(self, id: str, scope: Scope) -> None:
        for group in self.security_groups.values():
            if scope.project_id in (None, group.project_id) and any(rule.id == id for rule in group.rules):
                self._keep(replace(group, rules=tuple(rule for rule in group.rules if rule.id != id)))
                return
        raise errors.NotFound(f"Security group rule {id} not found.")

    def list_default_rules(self) -> tuple[SecurityRule, ...]:
        return tuple(self.default_rules.values())

    def get_default_rule(self, id: str) -> SecurityRule:
        if id not in self.default_rules:
            raise errors.NotFound(f"Security group default rule {id} not found.")
        return self.default_rules[id]

    def create_default_rule(self, rule: NewSecurityRule) -> SecurityRule:
        wanted = replace(security_rules.checked(rule), protocol=rule.protocol)
        if any(security_rules.same(one, wanted) for one in self.default_rules.values()):
            raise errors.Conflict("This default rule already exists.")
        id = str(len(self.default_rules) + 1)
        self.default_rules[id] = SecurityRule(id=id, group_id="", protocol=wanted.protocol, cidr=wanted.cidr,
                                              from_port=wanted.from_port, to_port=wanted.to_port)
        return self.default_rules[id]

    def delete_default_rule(self, id: str) -> None:
        self.get_default_rule(id)
        del self.default_rules[id]

    def list_provider_rules(self) -> tuple[SecurityRule, ...]:
        return ()

    def create_provider_rule(self, rule: NewSecurityRule) -> SecurityRule:
        wanted = security_rules.checked(rule)
        return SecurityRule(id="1", group_id="", protocol=wanted.protocol, cidr=wanted.cidr,
                            from_port=wanted.from_port, to_port=wanted.to_port)

    def delete_provider_rule(self, id: str) -> None:
        raise errors.NotFound(f"Provider rule {id} not found.")

    def list_server_security_groups(self, query: ServerQuery) -> tuple[SecurityGroup, ...]:
        server = self._find(query.uuid, query.scope)
        groups = self.list_security_groups(SecurityGroupQuery(scope=Scope(project_id=server.project_id)))
        return tuple(group for group in groups if group.name in server.security_groups)

    def change_group_membership(self, change: GroupMembership) -> None:
        server = self._find(change.server_uuid)
        groups = self.list_security_groups(SecurityGroupQuery(scope=Scope(project_id=server.project_id)))
        named = [group for group in groups if change.group in (group.name, group.id)]
        if not named or (not change.member and named[0].name not in server.security_groups):
            raise errors.NotFound(f"Security group {change.group} not found.")
        if change.member and named[0].name in server.security_groups:
            raise errors.Invalid("The server is in it already.")
        names = [name for name in server.security_groups if name != named[0].name]
        self.servers[server.uuid] = replace(server, security_groups=(
            *names, *((named[0].name,) if change.member else ())))

    def _changeable(self, id: str, scope: Scope) -> SecurityGroup:
        group = self.get_security_group(id, scope)
        if group.name == DEFAULT:
            raise errors.Invalid("Unable to change system group 'default'")
        return group

    def _keep(self, group: SecurityGroup) -> SecurityGroup:
        self.security_groups[group.id] = group
        return group
