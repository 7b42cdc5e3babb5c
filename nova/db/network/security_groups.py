"""nova-network's security groups: groups, their rules, common rules, and members.

A project's ``default`` group is created on first use, with the default rules, in one transaction. Groups are created,
renamed and counted under the project's lock (``nova.db.network.network_quota``), a group's rules under its row's lock.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from nova import errors
from nova.db.models.cell import (
    common_rules,
    migrations,
    security_group_members,
    security_group_rules,
    security_groups,
    servers,
)
from nova.db.network import network_quota
from nova.db.sql.statements import insert_all
from nova.db.sql.types import Columns, new_key, utc_now
from nova.model.base import Page, Scope
from nova.model.network.security_groups import DEFAULT, NewSecurityRule, SecurityGroup, SecurityRule
from nova.model.server.migrations import OVER
from nova.model.server.states import TaskState

#: Kinds of rules that belong to no group.
OF_NEW_PROJECTS, OF_PROVIDER = "default", "provider"
_WORDS = ("protocol", "from_port", "to_port", "cidr")


# -- groups

def _named(tx: Connection, project_id: str, name: str) -> int | None:
    found = tx.execute(sa.select(security_groups.c.id).where(security_groups.c.project_id == project_id,
                                                             security_groups.c.name == name)).scalar_one_or_none()
    return None if found is None else int(found)


def ensure_default(tx: Connection, project_id: str, user_id: str | None) -> int:
    """Return the key of the project's default group; create it with the default rules if it does not exist."""
    network_quota.lock_owner(tx, project_id)
    found = _named(tx, project_id, DEFAULT)
    if found is not None:
        return found
    made = _insert(tx, project_id, user_id, DEFAULT, DEFAULT)
    rules = [{**{name: getattr(row, name) for name in _WORDS}, "group_id": made, "source_id": None,
              "protocol": row.protocol.lower() if row.protocol else None}
             for row in common(tx, OF_NEW_PROJECTS)]
    insert_all(tx, security_group_rules, rules)
    return made


def insert(tx: Connection, project_id: str, user_id: str | None, name: str, description: str) -> int:
    """Insert a group; the caller holds the project's lock. Raises security_group.NameTaken."""
    if _named(tx, project_id, name) is not None:
        raise errors.security_group.NameTaken(name=name, project=project_id)
    return _insert(tx, project_id, user_id, name, description)


def _insert(tx: Connection, project_id: str, user_id: str | None, name: str, description: str) -> int:
    made = tx.execute(sa.insert(security_groups).values(project_id=project_id, user_id=user_id, name=name,
                                                        description=description, created_at=utc_now()))
    return new_key(made)


class GroupRow(NamedTuple):
    """A security group without its rules; its fields are the columns of that name."""

    id: int
    name: str
    project_id: str
    description: str | None


class MemberRow(NamedTuple):
    """The columns of a live server, locked, that joining and leaving groups need."""

    uuid: str
    project_id: str
    host: str | None
    security_groups: tuple[str, ...] | None
    task_state: str | None


_GROUP = [security_groups.c[name] for name in GroupRow._fields]


def locked(tx: Connection, key: int, scope: Scope) -> GroupRow:
    """Lock and return the group's row. Raises security_group.NotFound if it is outside the scope."""
    query = _within(sa.select(*_GROUP).where(security_groups.c.id == key), scope)
    row = tx.execute(query.with_for_update()).one_or_none()
    if row is None:
        raise errors.security_group.NotFound(group=key)
    return GroupRow._make(row)


def rename(tx: Connection, row: GroupRow, name: str, description: str | None) -> None:
    """Rename a group, also in its members' rows; the caller holds the project's lock. Raises
    security_group.NameTaken."""
    if _named(tx, row.project_id, name) not in (None, row.id):
        raise errors.security_group.NameTaken(name=name, project=row.project_id)
    tx.execute(sa.update(security_groups).where(security_groups.c.id == row.id)
               .values(name=name, description=description))
    if name == row.name:
        return
    members = sa.select(security_group_members.c.server_uuid).where(security_group_members.c.group_id == row.id)
    shown = tx.execute(sa.select(servers.c.uuid, servers.c.security_groups).where(
        servers.c.uuid.in_(members)).with_for_update()).all()
    for one in shown:
        names = tuple(name if old == row.name else old for old in one.security_groups or ())
        tx.execute(sa.update(servers).where(servers.c.uuid == one.uuid).values(security_groups=names))


def delete(tx: Connection, key: int) -> None:
    """Delete a group, its rules, and other groups' rules that allow traffic from its members."""
    rules = security_group_rules
    tx.execute(sa.delete(rules).where(sa.or_(rules.c.group_id == key, rules.c.source_id == key)))
    tx.execute(sa.delete(security_group_members).where(security_group_members.c.group_id == key))
    tx.execute(sa.delete(security_groups).where(security_groups.c.id == key))


def count(tx: Connection, project_id: str) -> int:
    """Return the number of the project's groups."""
    return int(tx.execute(sa.select(sa.func.count()).select_from(security_groups).where(
        security_groups.c.project_id == project_id)).scalar_one())


def select(tx: Connection, scope: Scope, page: Page, names: Sequence[str] = ()) -> tuple[SecurityGroup, ...]:
    """Return a page of groups with their rules, by age, in two statements."""
    query = _within(sa.select(*_GROUP), scope).order_by(security_groups.c.id).offset(page.offset or None)
    if names:
        query = query.where(security_groups.c.name.in_(names))
    if page.limit is not None:
        query = query.limit(page.limit)
    elif page.offset and tx.dialect.name != "postgresql":
        query = query.limit(2**62)  # MariaDB and SQLite accept no OFFSET without LIMIT
    return _whole(tx, list(map(GroupRow._make, tx.execute(query))))


def get(tx: Connection, key: int, scope: Scope) -> SecurityGroup:
    """Return a group with its rules. Raises security_group.NotFound if it does not exist or is outside the scope."""
    row = tx.execute(_within(sa.select(*_GROUP).where(security_groups.c.id == key), scope)).one_or_none()
    if row is None:
        raise errors.security_group.NotFound(group=key)
    return _whole(tx, [GroupRow._make(row)])[0]


def of_server(tx: Connection, server_uuid: str) -> tuple[SecurityGroup, ...]:
    """Return a server's groups with their rules, in creation order."""
    members = security_group_members
    rows = tx.execute(sa.select(*_GROUP).join_from(members, security_groups,
                                                   security_groups.c.id == members.c.group_id)
                      .where(members.c.server_uuid == server_uuid).order_by(security_groups.c.id))
    return _whole(tx, list(map(GroupRow._make, rows)))


_NAMED = (sa.select(*_GROUP)
          .where(security_groups.c.project_id == sa.bindparam("project_id"),
                 sa.or_(security_groups.c.name.in_(sa.bindparam("names", expanding=True)),
                        security_groups.c.id.in_(sa.bindparam("ids", expanding=True)))))


def keys_of(tx: Connection, project_id: str, wanted: Iterable[str]) -> dict[str, GroupRow]:
    """Return the project's groups by requested id or name. A UUID is always an id; a number, the older
    form of ids, is tried as a name first."""
    asked = list(wanted)
    ids = [key for key in map(key_of, asked) if key is not None]
    rows = tx.execute(_NAMED, {"project_id": project_id, "names": asked, "ids": ids})
    by_id = {row.id: row for row in map(GroupRow._make, rows)}
    by_name = {row.name: row for row in by_id.values()}
    found = {}
    for word in asked:
        key = key_of(word)
        as_id, as_name = by_id.get(key) if key is not None else None, by_name.get(word)
        found[word] = as_id or as_name if _HEX.fullmatch(word) else as_name or as_id
    return {word: row for word, row in found.items() if row is not None}


_MADE = "00000000-0000-4000-8000-"  # the prefix of UUIDs that encode a key


def id_of(key: int) -> str:
    """Return the key as a UUID: the form of group and rule ids in the API, as in Neutron."""
    return f"{_MADE}{key:012x}"


def key_of(text: str) -> int | None:
    """Return the key encoded in an API id (or a number, the older form of ids). None if the text is neither."""
    if _HEX.fullmatch(text):
        return int(text[len(_MADE):], 16)
    return int(text) if text.isascii() and text.isdigit() and len(text) < 19 else None


_HEX = re.compile(f"{_MADE}[0-9a-f]{{12}}")


def _within(query: sa.Select[*Columns], scope: Scope) -> sa.Select[*Columns]:
    return query if scope.project_id is None else query.where(security_groups.c.project_id == scope.project_id)


def _whole(tx: Connection, rows: Sequence[GroupRow]) -> tuple[SecurityGroup, ...]:
    rules: dict[int, list[SecurityRule]] = {}
    if rows:
        of_these = security_group_rules.c.group_id.in_([row.id for row in rows])
        for rule in tx.execute(_RULES.where(of_these)):
            rules.setdefault(rule.group_id, []).append(_rule(rule))
    return tuple(SecurityGroup(id=id_of(row.id), name=row.name, project_id=row.project_id,
                               description=row.description or "", rules=tuple(rules.get(row.id, ())))
                 for row in rows)


# -- rules

_SOURCES = security_groups.alias("sources")
_RULES = (sa.select(security_group_rules, _SOURCES.c.name.label("source_name"),
                    _SOURCES.c.project_id.label("source_project_id"))
          .join_from(security_group_rules, _SOURCES, _SOURCES.c.id == security_group_rules.c.source_id, isouter=True)
          .order_by(security_group_rules.c.id))


def _rule(row: sa.Row[*tuple[object, ...]]) -> SecurityRule:
    return SecurityRule(
        id=id_of(row.id), group_id=id_of(row.group_id), **{name: getattr(row, name) for name in _WORDS},
        source_id=None if row.source_id is None else id_of(row.source_id), source_name=row.source_name,
        source_project_id=row.source_project_id)


def rule(tx: Connection, key: int) -> SecurityRule:
    """Return a rule with the name of its source group. Raises security_group.NoRule."""
    row = tx.execute(_RULES.where(security_group_rules.c.id == key)).one_or_none()
    if row is None:
        raise errors.security_group.NoRule(rule=key)
    return _rule(row)


def rules_of(tx: Connection, group: int) -> list[SecurityRule]:
    """Return a group's rules, in creation order."""
    return [_rule(row) for row in tx.execute(_RULES.where(security_group_rules.c.group_id == group))]


def insert_rule(tx: Connection, rule: NewSecurityRule) -> int:
    """Insert a rule; its ids are existing ids of the API."""
    values = {name: getattr(rule, name) for name in _WORDS}
    made = tx.execute(sa.insert(security_group_rules).values(
        **values, group_id=key_of(rule.group_id), source_id=key_of(rule.source_id) if rule.source_id else None))
    return new_key(made)


def delete_rule(tx: Connection, key: int) -> None:
    """Delete a rule; a missing one is ignored."""
    tx.execute(sa.delete(security_group_rules).where(security_group_rules.c.id == key))


# -- common rules, which belong to no group

def common(tx: Connection, kind: str) -> list[SecurityRule]:
    """Return the common rules of a kind, in creation order."""
    rows = tx.execute(sa.select(common_rules).where(common_rules.c.kind == kind).order_by(common_rules.c.id))
    return [SecurityRule(id=str(row.id), group_id="", **{name: getattr(row, name) for name in _WORDS}) for row in rows]


def insert_common(tx: Connection, kind: str, rule: NewSecurityRule) -> SecurityRule:
    """Insert a common rule; return it with its id. The caller has checked for duplicates."""
    values = {name: getattr(rule, name) for name in _WORDS}
    made = tx.execute(sa.insert(common_rules).values(**values, kind=kind))
    return SecurityRule(id=str(new_key(made)), group_id="", **values)


def delete_common(tx: Connection, kind: str, key: int) -> None:
    """Delete a common rule of that kind. Raises security_group.NoRule."""
    if not tx.execute(sa.delete(common_rules).where(common_rules.c.kind == kind, common_rules.c.id == key)).rowcount:
        raise errors.security_group.NoRule(rule=key)


# -- members

def join_new(tx: Connection, groups: Mapping[int, str], uuids: Sequence[str]) -> None:
    """Add servers inserted in this transaction to these groups (key -> name), in one statement. Raises
    security_group.Changed if a group was deleted or renamed meanwhile."""
    if not groups or not uuids:
        return
    pairs = (sa.select(security_groups.c.id, servers.c.uuid).join_from(security_groups, servers, sa.true())
             .where(security_groups.c.id.in_(list(groups)), security_groups.c.name.in_(list(groups.values())),
                    servers.c.uuid.in_(uuids)).with_for_update(read=True))
    joined = tx.execute(sa.insert(security_group_members).from_select(["group_id", "server_uuid"], pairs),
                        execution_options={"preserve_rowcount": True}).rowcount  # psycopg: while the cursor is open
    if joined != len(groups) * len(uuids):
        raise errors.security_group.Changed()


def locked_server(tx: Connection, uuid: str) -> MemberRow:
    """Lock a live server's row; return the columns that joining and leaving need. Raises server.NotFound."""
    row = tx.execute(sa.select(*[servers.c[name] for name in MemberRow._fields])
                     .where(servers.c.uuid == uuid, servers.c.deleted == 0).with_for_update()).one_or_none()
    if row is None:
        raise errors.server.NotFound(server=uuid)
    return MemberRow._make(row)


def join(tx: Connection, group: GroupRow, server: MemberRow) -> None:
    """Add the server to the group; both rows are locked by the caller. Raises security_group.Member, or server.Going if
    the server is being deleted and may have left all groups already."""
    if server.task_state == TaskState.DELETING:
        raise errors.server.Going(server=server.uuid)
    members = security_group_members
    if tx.execute(sa.select(members.c.group_id).where(members.c.group_id == group.id,
                                                      members.c.server_uuid == server.uuid)).first() is not None:
        raise errors.security_group.Member(group=group.name, server=server.uuid)
    tx.execute(sa.insert(members).values(group_id=group.id, server_uuid=server.uuid))
    _show(tx, server.uuid, (*(server.security_groups or ()), group.name))


def leave(tx: Connection, group: GroupRow, server: MemberRow) -> None:
    """Remove the server from the group; both rows are locked by the caller. Raises security_group.NotMember."""
    members = security_group_members
    if not tx.execute(sa.delete(members).where(members.c.group_id == group.id,
                                               members.c.server_uuid == server.uuid)).rowcount:
        raise errors.security_group.NotMember(group=group.name, server=server.uuid)
    _show(tx, server.uuid, tuple(name for name in server.security_groups or () if name != group.name))


def _show(tx: Connection, uuid: str, names: tuple[str, ...]) -> None:
    tx.execute(sa.update(servers).where(servers.c.uuid == uuid).values(security_groups=names))


def forget(tx: Connection, uuids: Sequence[str]) -> None:
    """Remove deleted servers from all groups."""
    if not uuids:
        return
    tx.execute(sa.delete(security_group_members).where(security_group_members.c.server_uuid.in_(uuids)))


def in_use(tx: Connection, group: int) -> bool:
    """Return whether the group has a member that is not deleted."""
    members = security_group_members
    return tx.execute(sa.select(servers.c.id).join_from(members, servers, servers.c.uuid == members.c.server_uuid)
                      .where(members.c.group_id == group, servers.c.deleted == 0).limit(1)).first() is not None


# -- hosts to update

def hosts_of(tx: Connection, groups: Iterable[int]) -> set[str]:
    """Return the hosts of these groups' members, including both ends of unfinished migrations."""
    members = security_group_members
    return _hosts(tx, sa.select(members.c.server_uuid).where(members.c.group_id.in_(list(groups))))


def hosts_allowing(tx: Connection, groups: Iterable[int]) -> set[str]:
    """Return the hosts of servers whose rules allow traffic from members of these groups."""
    members, rules = security_group_members, security_group_rules
    return _hosts(tx, sa.select(members.c.server_uuid).join_from(rules, members, members.c.group_id == rules.c.group_id)
                  .where(rules.c.source_id.in_(list(groups))))


def _hosts(tx: Connection, uuids: sa.Select[object]) -> set[str]:
    there = sa.select(servers.c.host).where(servers.c.uuid.in_(uuids), servers.c.deleted == 0,
                                            servers.c.host.is_not(None))
    moving = sa.and_(migrations.c.server_uuid.in_(uuids), migrations.c.status.not_in(OVER))
    ends = [sa.select(end).where(moving, end.is_not(None))
            for end in (migrations.c.dest_compute, migrations.c.source_compute)]
    return {row[0] for row in tx.execute(sa.union(there, *ends))}


_MEMBER, _LETS_IN, _LET, _OTHER = (security_group_members.alias("a"), security_group_members.alias("b"),
                                    security_group_rules.alias("r"), servers.alias("o"))


def allowing_servers(uuids: sa.BindParameter[Sequence[str]], *more: sa.Null
                     ) -> tuple[sa.Select[*tuple[object, ...]], ...]:
    """Select, for a UNION, the hosts of servers that allow traffic from these (by their groups), and the ends of their
    unfinished migrations; with ``more`` columns."""
    others = (_MEMBER.join(_LET, _LET.c.source_id == _MEMBER.c.group_id)
              .join(_LETS_IN, _LETS_IN.c.group_id == _LET.c.group_id)
              .join(_OTHER, _OTHER.c.uuid == _LETS_IN.c.server_uuid))
    moved = others.join(migrations, sa.and_(migrations.c.server_uuid == _OTHER.c.uuid,
                                            migrations.c.status.not_in(OVER)))
    places = ((others, _OTHER.c.host), (moved, migrations.c.dest_compute), (moved, migrations.c.source_compute))
    return tuple(sa.select(host.label("host"), *more).select_from(where)
                 .where(_MEMBER.c.server_uuid.in_(uuids), _OTHER.c.deleted == 0, host.is_not(None))
                 .group_by(host) for where, host in places)


_LETTING_IN = sa.union(*allowing_servers(sa.bindparam("uuids", expanding=True)))


def hosts_letting_in_servers(tx: Connection, uuids: Sequence[str]) -> set[str]:
    """Return the hosts of servers that allow traffic from these (by their groups), and the ends of their unfinished
    migrations."""
    return {row.host for row in tx.execute(_LETTING_IN, {"uuids": list(uuids)})}
