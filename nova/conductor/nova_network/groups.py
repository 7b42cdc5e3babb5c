"""Security groups of nova-network, as its API shows and changes them. Changes of guests' rules return after the hosts
were notified."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

import msgspec

from nova import context, errors
from nova.conductor.engine.deps import Deps
from nova.conductor.nova_network.firewall_updates import FirewallUpdates
from nova.conductor.quota import quota
from nova.db.host import services
from nova.db.network import network_quota
from nova.db.network import security_groups as rows
from nova.db.network.floating import UUID
from nova.db.server import servers
from nova.db.sql.engine import Connection
from nova.model.base import Scope
from nova.model.host.services import ServiceQuery
from nova.model.network import security_rules
from nova.model.network.security_groups import (
    DEFAULT,
    GroupMembership,
    NewSecurityGroup,
    NewSecurityRule,
    SecurityGroup,
    SecurityGroupQuery,
    SecurityGroupUpdate,
    SecurityRule,
)
from nova.model.quota.quotas import UNLIMITED
from nova.model.server.servers import ServerQuery

T = TypeVar("T")

REMEMBERED = 10_000  # projects with a cached default group


class Groups:
    """The calls of SecurityGroupCalls, and internal queries of nova-network."""

    def __init__(self, deps: Deps, firewall_updates: FirewallUpdates | None = None) -> None:
        self.deps = deps
        self.firewall_updates = firewall_updates or FirewallUpdates(deps.compute)
        self._defaults: dict[str, int] = {}

    # -- groups

    def list_security_groups(self, query: SecurityGroupQuery) -> tuple[SecurityGroup, ...]:
        """Return a page of groups. The first page of a project creates its default group. ``names``: only these
        groups."""
        project = query.scope.project_id
        most = self.deps.settings.max_limit
        page = msgspec.structs.replace(query.page, limit=min(query.page.limit or most, most))

        def read(tx: Connection) -> tuple[SecurityGroup, ...]:
            return rows.select(tx, query.scope, page, query.names)
        with self.deps.cell.reading() as tx:
            found = read(tx)
        if project and not (query.page.offset or any(group.name == DEFAULT for group in found)) and \
                (not query.names or DEFAULT in query.names):
            found = self._with_default(project, read)
        return found

    def _with_default(self, project: str, read: Callable[[Connection], T]) -> T:
        def work(tx: Connection) -> T:
            rows.ensure_default(tx, project, context.current().user_id)
            return read(tx)
        return self.deps.cell.transact(work)

    def get_security_group(self, id: str, scope: Scope) -> SecurityGroup:
        """Return one group. Raises NotFound also for an invalid ID: `openstack` asks by name first, and lists the
        groups after a 404."""
        key = rows.key_of(id)
        if key is None:
            raise errors.security_group.NotFound(group=id)
        with self.deps.cell.reading() as tx:
            return rows.get(tx, key, scope)

    def create_security_group(self, group: NewSecurityGroup) -> SecurityGroup:
        """Create a group in its project, or in the context's project. Raises security_group.NameTaken,
        security_group.OverQuota."""
        who = context.current()
        project = group.project_id or str(who.project_id)
        limit = self._limit("security_groups", project, who.user_id)

        def write(tx: Connection) -> SecurityGroup:
            rows.ensure_default(tx, project, who.user_id)  # takes the project's lock
            if not quota.fits(limit, rows.count(tx, project), 1):
                raise errors.security_group.OverQuota(limit=limit)
            key = rows.insert(tx, project, who.user_id, group.name, group.description)
            return SecurityGroup(id=rows.id_of(key), name=group.name, project_id=project, description=group.description)
        return self.deps.cell.transact(write)

    def update_security_group(self, update: SecurityGroupUpdate) -> SecurityGroup:
        """Update a group; None leaves a value unchanged. Raises security_group.BadId, security_group.NotFound,
        security_group.Default, security_group.NameTaken."""
        key = _group_key(update.id)

        def write(tx: Connection) -> SecurityGroup:
            network_quota.lock_owner(tx, rows.get(tx, key, update.scope).project_id)
            row = rows.locked(tx, key, update.scope)
            if row.name == DEFAULT:
                raise errors.security_group.Default(what="update")
            rows.rename(tx, row, update.name or row.name,
                        row.description if update.description is None else update.description)
            return rows.get(tx, key, update.scope)
        return self.deps.cell.transact(write)

    def delete_security_group(self, id: str, scope: Scope) -> None:
        """Delete a group. Raises security_group.BadId, security_group.NotFound, security_group.Default,
        security_group.InUse."""
        def write(tx: Connection) -> set[str]:
            row = rows.locked(tx, _group_key(id), scope)
            if row.name == DEFAULT:
                raise errors.security_group.Default(what="delete")
            if rows.in_use(tx, row.id):
                raise errors.security_group.InUse()
            rows.delete(tx, row.id)
            return set()  # it has no members, so no rule depends on it
        self.deps.cell.transact(write)

    # -- rules

    def create_security_rule(self, rule: NewSecurityRule, scope: Scope) -> SecurityRule:
        """Create a rule. Raises security_group.BadId, security_group.NotFound; security_group.BadProtocol,
        security_group.BadPorts, security_group.BadCidr, security_group.NotEnough; security_group.RuleThere,
        security_group.RulesOverQuota."""
        key, who = _group_key(rule.group_id), context.current()
        source = _group_key(rule.source_id) if rule.source_id else None
        wanted = security_rules.checked(msgspec.structs.replace(
            rule, group_id=rows.id_of(key), source_id=None if source is None else rows.id_of(source)))
        with self.deps.cell.reading() as tx:
            project = rows.get(tx, key, scope).project_id
        limit = self._limit("security_group_rules", project, who.user_id)

        def write(tx: Connection) -> tuple[SecurityRule, set[str]]:
            group = rows.locked(tx, key, scope)
            if source not in (None, key):
                rows.locked(tx, source, scope)
            present = rows.rules_of(tx, key)
            if any(security_rules.same(one, wanted) for one in present):
                raise errors.security_group.RuleThere(group=group.name)
            if not quota.fits(limit, len(present), 1):
                raise errors.security_group.RulesOverQuota(limit=limit)
            return rows.rule(tx, rows.insert_rule(tx, wanted)), rows.hosts_of(tx, [key])
        made, hosts = self.deps.cell.transact(write)
        self.firewall_updates.send(hosts)
        return made

    def delete_security_rule(self, id: str, scope: Scope) -> None:
        """Delete a rule. Raises security_group.BadRuleId, security_group.NoRule; security_group.NotFound if its group
        is outside the scope."""
        def write(tx: Connection) -> set[str]:
            found = rows.rule(tx, _rule_key(id))
            group = rows.locked(tx, _group_key(found.group_id), scope)
            rows.delete_rule(tx, _rule_key(found.id))
            return rows.hosts_of(tx, [group.id])
        self.firewall_updates.send(self.deps.cell.transact(write))

    # -- default rules of new projects, and provider rules for all guests

    def list_default_rules(self) -> tuple[SecurityRule, ...]:
        """Return the rules of new projects' default groups. Changes of them do not affect existing groups."""
        with self.deps.cell.reading() as tx:
            return tuple(rows.common(tx, rows.OF_NEW_PROJECTS))

    def get_default_rule(self, id: str) -> SecurityRule:
        """Return one default rule. Raises security_group.BadRuleId, security_group.NoRule."""
        found = {rule.id: rule for rule in self.list_default_rules()}
        key = str(_rule_key(id))
        if key not in found:
            raise errors.security_group.NoRule(rule=id)
        return found[key]

    def create_default_rule(self, rule: NewSecurityRule) -> SecurityRule:
        """Create a default rule. Raises security_group.DefaultRuleThere, and errors of a rule as in
        ``create_security_rule``."""
        return self._add_common(rows.OF_NEW_PROJECTS, rule)

    def delete_default_rule(self, id: str) -> None:
        """Delete a default rule. Raises security_group.BadRuleId, security_group.NoRule."""
        self.deps.cell.transact(lambda tx: rows.delete_common(tx, rows.OF_NEW_PROJECTS, _rule_key(id)))

    def list_provider_rules(self) -> tuple[SecurityRule, ...]:
        """Return the provider rules, which apply to every guest of every project."""
        with self.deps.cell.reading() as tx:
            return tuple(rows.common(tx, rows.OF_PROVIDER))

    def create_provider_rule(self, rule: NewSecurityRule) -> SecurityRule:
        """Create a provider rule and notify all compute hosts. Raises security_group.DefaultRuleThere, and errors of a
        rule as in ``create_security_rule``."""
        made = self._add_common(rows.OF_PROVIDER, rule)
        self._send_to_all()
        return made

    def delete_provider_rule(self, id: str) -> None:
        """Delete a provider rule and notify all compute hosts. Raises security_group.BadRuleId,
        security_group.NoRule."""
        self.deps.cell.transact(lambda tx: rows.delete_common(tx, rows.OF_PROVIDER, _rule_key(id)))
        self._send_to_all()

    def _send_to_all(self) -> None:
        with self.deps.cell.reading() as tx:
            computes = services.select(tx, ServiceQuery(binary=services.COMPUTE))
        self.firewall_updates.send(row.host for row, _clock in computes)

    def _add_common(self, kind: str, rule: NewSecurityRule) -> SecurityRule:
        wanted = security_rules.checked(msgspec.structs.replace(rule, source_id=None))

        def write(tx: Connection) -> SecurityRule:
            network_quota.lock_owner(tx, f"rules:{kind}")
            if any(security_rules.same(one, wanted) for one in rows.common(tx, kind)):
                raise errors.security_group.DefaultRuleThere()
            return rows.insert_common(tx, kind, msgspec.structs.replace(wanted, protocol=rule.protocol))
        return self.deps.cell.transact(write)

    # -- members

    def list_server_security_groups(self, query: ServerQuery) -> tuple[SecurityGroup, ...]:
        """Return the groups of a server. Raises server.NotFound outside the scope."""
        with self.deps.cell.reading() as tx:
            servers.target(tx, query.uuid, query.scope, query.with_deleted)
            return rows.of_server(tx, query.uuid)

    def change_group_membership(self, change: GroupMembership) -> None:
        """Add a server to a group of its project, or remove it; by the group's name or ID. Raises server.NotFound,
        server.Going; security_group.NotFound, security_group.Member, security_group.NotMember."""
        def write(tx: Connection) -> set[str]:
            server = rows.locked_server(tx, change.server_uuid)
            found = rows.keys_of(tx, server.project_id, [change.group]).get(change.group)
            if found is None:
                raise errors.security_group.NotFound(group=change.group)
            group = rows.locked(tx, found.id, Scope(project_id=server.project_id))
            (rows.join if change.member else rows.leave)(tx, group, server)
            own = {server.host} if server.host else set()
            return own | rows.hosts_allowing(tx, [group.id])
        self.firewall_updates.send(self.deps.cell.transact(write))

    # -- internal queries of nova-network

    def admit(self, project: str, names: Sequence[str]) -> dict[int, str]:
        """Return the groups with these names or IDs, key -> name. A project's missing default group is created. It is
        never deleted or renamed, so its key can be cached. Raises server.NoSuchSecurityGroup."""
        asked = list(dict.fromkeys(names)) or [DEFAULT]
        if asked == [DEFAULT]:
            return {self._default_of(project): DEFAULT}
        with self.deps.cell.reading() as tx:
            found = rows.keys_of(tx, project, asked)
        if DEFAULT in asked and DEFAULT not in found:
            found = self._with_default(project, lambda own: rows.keys_of(own, project, asked))
        for name in asked:
            if name not in found:
                raise errors.server.NoSuchSecurityGroup(name=name)
        return {row.id: row.name for row in found.values()}

    def _default_of(self, project: str) -> int:
        key = self._defaults.get(project)
        if key is None:
            with self.deps.cell.reading() as tx:
                found = rows.keys_of(tx, project, [DEFAULT]).get(DEFAULT)
            user = context.current().user_id
            key = found.id if found is not None else self.deps.cell.transact(
                lambda own: rows.ensure_default(own, project, user))
            if len(self._defaults) >= REMEMBERED:
                self._defaults.clear()
            self._defaults[project] = key
        return key

    def hosts_allowing(self, tx: Connection, uuids: Sequence[str]) -> list[str]:
        """Return the hosts of guests whose rules admit these servers' addresses."""
        return sorted(rows.hosts_letting_in_servers(tx, uuids))

    def addresses_changed(self, uuids: Sequence[str]) -> None:
        """Notify hosts after a change of the servers' addresses: the servers' own hosts, and the hosts of guests whose
        rules admit them."""
        with self.deps.cell.reading() as tx:
            hosts = rows.hosts_letting_in_servers(tx, uuids) | \
                {row.host for row in servers.places(tx, uuids).values() if row.host}
        self.firewall_updates.send(hosts)

    def _limit(self, resource: str, project: str, user: str | None) -> int:
        """Return the user's limit in the project. Call it before the cell's transaction: limits are in another
        store."""
        whose = quota.owner(self.deps, project, user)
        with self.deps.api.reading() as tx:
            _project, limits = quota.effective(self.deps, tx, whose)
        return limits.get(resource, UNLIMITED)


def _group_key(id: str) -> int:
    """Return the key of a group ID. Raises security_group.NotFound for a UUID, which names no group here;
    security_group.BadId for an invalid ID."""
    key = rows.key_of(id)
    if key is None:
        raise errors.security_group.NotFound(group=id) if UUID.fullmatch(id) else errors.security_group.BadId(given=id)
    return key


def _rule_key(id: str) -> int:
    """Return the key of a rule ID. Raises security_group.NoRule for a UUID, which names no rule here;
    security_group.BadRuleId for an invalid ID."""
    key = rows.key_of(id)
    if key is None:
        raise errors.security_group.NoRule(rule=id) if UUID.fullmatch(id) else errors.security_group.BadRuleId(given=id)
    return key


__all__ = ["Groups"]
