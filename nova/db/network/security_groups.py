"""Security groups of nova-network's: groups, their rules, what all groups have in common, and their members.

A project's ``default`` group is made by whoever needs it first, with the default rules, in one transaction. Groups are
made, named and counted under the project's lock (``nova.db.network.network_quota``), the rules of a group under its
row's.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

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
from nova.db.sql.types import AnyColumn, AnyRow, new_key, utc_now
from nova.model.base import Page, Scope
from nova.model.network.security_groups import DEFAULT, NewSecurityRule, SecurityGroup, SecurityRule
from nova.model.server.migrations import OVER
from nova.model.server.states import TaskState

#: Kinds of rules that are no group's.
OF_NEW_PROJECTS, OF_PROVIDER = "default", "provider"
_WORDS = ("protocol", "from_port", "to_port", "cidr")


# -- groups

def _named(tx: Connection, project_id: str, name: str) -> int | None:
    found = tx.execute(sa.select(security_groups.c.id).where(security_groups.c.project_id == project_id,
                                                             security_groups.c.name == name)).scalar_one_or_none()
    return None if found is None else int(found)


def ensure_default(tx: Connection, project_id: str, user_id: str | None) -> int:
    """The key of the project's default group, which is made, with what new projects are given, where there is none."""
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
    """security_group.NameTaken. The caller holds the project's lock."""
    if _named(tx, project_id, name) is not None:
        raise errors.security_group.NameTaken(name=name, project=project_id)
    return _insert(tx, project_id, user_id, name, description)


def _insert(tx: Connection, project_id: str, user_id: str | None, name: str, description: str) -> int:
    made = tx.execute(sa.insert(security_groups).values(project_id=project_id, user_id=user_id, name=name,
                                                        description=description, created_at=utc_now()))
    return new_key(made)


def locked(tx: Connection, key: int, scope: Scope) -> AnyRow:
    """The group's row until the transaction's end. NotFound outside the scope."""
    query = _within(sa.select(security_groups).where(security_groups.c.id == key), scope)
    row = tx.execute(query.with_for_update()).one_or_none()
    if row is None:
        raise errors.security_group.NotFound(group=key)
    return row


def rename(tx: Connection, row: AnyRow, name: str, description: str | None) -> None:
    """security_group.NameTaken. Servers show the new name with the same commit. The caller holds the project's lock."""
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
    """With its rules, and those by which others let its members in."""
    rules = security_group_rules
    tx.execute(sa.delete(rules).where(sa.or_(rules.c.group_id == key, rules.c.source_id == key)))
    tx.execute(sa.delete(security_group_members).where(security_group_members.c.group_id == key))
    tx.execute(sa.delete(security_groups).where(security_groups.c.id == key))


def count(tx: Connection, project_id: str) -> int:
    """How many groups the project has."""
    return int(tx.execute(sa.select(sa.func.count()).select_from(security_groups).where(
        security_groups.c.project_id == project_id)).scalar_one())


def select(tx: Connection, scope: Scope, page: Page, names: Sequence[str] = ()) -> tuple[SecurityGroup, ...]:
    """A page of groups with their rules, by age, in two statements."""
    query = _within(sa.select(security_groups), scope).order_by(security_groups.c.id).offset(page.offset or None)
    if names:
        query = query.where(security_groups.c.name.in_(names))
    if page.limit is not None:
        query = query.limit(page.limit)
    elif page.offset and tx.dialect.name != "postgresql":
        query = query.limit(2**62)  # these know no offset without a limit
    return _whole(tx, tx.execute(query).all())


def get(tx: Connection, key: int, scope: Scope) -> SecurityGroup:
    """A group with its rules. security_group.NotFound: there is none, or it is outside the scope."""
    rows = tx.execute(_within(sa.select(security_groups).where(security_groups.c.id == key), scope)).all()
    if not rows:
        raise errors.security_group.NotFound(group=key)
    return _whole(tx, rows)[0]


def of_server(tx: Connection, server_uuid: str) -> tuple[SecurityGroup, ...]:
    """With their rules, in the order of their making."""
    members = security_group_members
    rows = tx.execute(sa.select(security_groups).join_from(members, security_groups,
                                                           security_groups.c.id == members.c.group_id)
                      .where(members.c.server_uuid == server_uuid).order_by(security_groups.c.id)).all()
    return _whole(tx, rows)


_NAMED = (sa.select(security_groups.c.id, security_groups.c.name)
          .where(security_groups.c.project_id == sa.bindparam("project_id"),
                 sa.or_(security_groups.c.name.in_(sa.bindparam("names", expanding=True)),
                        security_groups.c.id.in_(sa.bindparam("ids", expanding=True)))))


def keys_of(tx: Connection, project_id: str, wanted: Iterable[str]) -> dict[str, AnyRow]:
    """What was asked for, by id or name -> its row (id, name), of one project. An id is one whatever groups are called;
    a number, as ids once were, is a name first."""
    asked = list(wanted)
    ids = [key for key in map(key_of, asked) if key is not None]
    rows = tx.execute(_NAMED, {"project_id": project_id, "names": asked, "ids": ids}).all()
    by_id = {row.id: row for row in rows}
    by_name = {row.name: row for row in rows}
    found = {}
    for word in asked:
        as_id, as_name = by_id.get(key_of(word)), by_name.get(word)
        found[word] = as_id or as_name if _HEX.fullmatch(word) else as_name or as_id
    return {word: row for word, row in found.items() if row is not None}


_MADE = "00000000-0000-4000-8000-"  # how ids begin that are made of keys


def id_of(key: int) -> str:
    """A uuid, as the API has ids of groups and rules since they are Neutron's, too."""
    return f"{_MADE}{key:012x}"


def key_of(text: str) -> int | None:
    """The key that an id of the API (or a number, as ids once were) stands for; None: it can be none."""
    if _HEX.fullmatch(text):
        return int(text[len(_MADE):], 16)
    return int(text) if text.isascii() and text.isdigit() and len(text) < 19 else None


_HEX = re.compile(f"{_MADE}[0-9a-f]{{12}}")


def _within(query: sa.Select[object], scope: Scope) -> sa.Select[AnyColumn]:
    return query if scope.project_id is None else query.where(security_groups.c.project_id == scope.project_id)


def _whole(tx: Connection, rows: Sequence[AnyRow]) -> tuple[SecurityGroup, ...]:
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


def _rule(row: AnyRow) -> SecurityRule:
    return SecurityRule(
        id=id_of(row.id), group_id=id_of(row.group_id), **{name: getattr(row, name) for name in _WORDS},
        source_id=None if row.source_id is None else id_of(row.source_id), source_name=row.source_name,
        source_project_id=row.source_project_id)


def rule(tx: Connection, key: int) -> SecurityRule:
    """A rule, with the name of its source group. security_group.NoRule."""
    row = tx.execute(_RULES.where(security_group_rules.c.id == key)).one_or_none()
    if row is None:
        raise errors.security_group.NoRule(rule=key)
    return _rule(row)


def rules_of(tx: Connection, group: int) -> list[SecurityRule]:
    """A group's rules, in the order of their making."""
    return [_rule(row) for row in tx.execute(_RULES.where(security_group_rules.c.group_id == group))]


def insert_rule(tx: Connection, rule: NewSecurityRule) -> int:
    """Its ids are of the API, and known."""
    values = {name: getattr(rule, name) for name in _WORDS}
    made = tx.execute(sa.insert(security_group_rules).values(
        **values, group_id=key_of(rule.group_id), source_id=key_of(rule.source_id) if rule.source_id else None))
    return new_key(made)


def delete_rule(tx: Connection, key: int) -> None:
    """A rule that is gone is no error."""
    tx.execute(sa.delete(security_group_rules).where(security_group_rules.c.id == key))


# -- rules of no group

def common(tx: Connection, kind: str) -> list[SecurityRule]:
    """Rules that are no group's, of a kind, in the order of their making."""
    rows = tx.execute(sa.select(common_rules).where(common_rules.c.kind == kind).order_by(common_rules.c.id))
    return [SecurityRule(id=str(row.id), group_id="", **{name: getattr(row, name) for name in _WORDS}) for row in rows]


def insert_common(tx: Connection, kind: str, rule: NewSecurityRule) -> SecurityRule:
    """The rule with its id. The caller has looked whether it is there."""
    values = {name: getattr(rule, name) for name in _WORDS}
    made = tx.execute(sa.insert(common_rules).values(**values, kind=kind))
    return SecurityRule(id=str(new_key(made)), group_id="", **values)


def delete_common(tx: Connection, kind: str, key: int) -> None:
    """Delete a rule that is no group's, of that kind. security_group.NoRule."""
    if not tx.execute(sa.delete(common_rules).where(common_rules.c.kind == kind, common_rules.c.id == key)).rowcount:
        raise errors.security_group.NoRule(rule=key)


# -- members

def join_new(tx: Connection, groups: Mapping[int, str], uuids: Sequence[str]) -> None:
    """Servers that this transaction has inserted are in these groups (key -> name), in one statement.
    security_group.Changed: one of them is not there any more, or has another name than the servers' rows say."""
    if not groups or not uuids:
        return
    pairs = (sa.select(security_groups.c.id, servers.c.uuid).join_from(security_groups, servers, sa.true())
             .where(security_groups.c.id.in_(list(groups)), security_groups.c.name.in_(list(groups.values())),
                    servers.c.uuid.in_(uuids)).with_for_update(read=True))
    joined = tx.execute(sa.insert(security_group_members).from_select(["group_id", "server_uuid"], pairs),
                        execution_options={"preserve_rowcount": True}).rowcount  # psycopg has it while it is open
    if joined != len(groups) * len(uuids):
        raise errors.security_group.Changed()


def locked_server(tx: Connection, uuid: str) -> AnyRow:
    """What joining and leaving must know of a live server, whose row is locked. NotFound."""
    row = tx.execute(sa.select(servers.c.uuid, servers.c.project_id, servers.c.host, servers.c.security_groups,
                               servers.c.task_state)
                     .where(servers.c.uuid == uuid, servers.c.deleted == 0).with_for_update()).one_or_none()
    if row is None:
        raise errors.server.NotFound(server=uuid)
    return row


def join(tx: Connection, group: AnyRow, server: AnyRow) -> None:
    """``group``: locked. ``server``: its row, locked. server.Going: a delete may have taken it out of all groups
    already."""
    if server.task_state == TaskState.DELETING:
        raise errors.server.Going(server=server.uuid)
    members = security_group_members
    if tx.execute(sa.select(members.c.group_id).where(members.c.group_id == group.id,
                                                      members.c.server_uuid == server.uuid)).first() is not None:
        raise errors.security_group.Member(group=group.name, server=server.uuid)
    tx.execute(sa.insert(members).values(group_id=group.id, server_uuid=server.uuid))
    _show(tx, server.uuid, (*(server.security_groups or ()), group.name))


def leave(tx: Connection, group: AnyRow, server: AnyRow) -> None:
    """Both rows are locked by the caller. security_group.NotMember."""
    members = security_group_members
    if not tx.execute(sa.delete(members).where(members.c.group_id == group.id,
                                               members.c.server_uuid == server.uuid)).rowcount:
        raise errors.security_group.NotMember(group=group.name, server=server.uuid)
    _show(tx, server.uuid, tuple(name for name in server.security_groups or () if name != group.name))


def _show(tx: Connection, uuid: str, names: tuple[str, ...]) -> None:
    tx.execute(sa.update(servers).where(servers.c.uuid == uuid).values(security_groups=names))


def forget(tx: Connection, uuids: Sequence[str]) -> None:
    """Servers that are gone are in no group."""
    if not uuids:
        return
    tx.execute(sa.delete(security_group_members).where(security_group_members.c.server_uuid.in_(uuids)))


def in_use(tx: Connection, group: int) -> bool:
    """Whether a server that is not deleted is in it."""
    members = security_group_members
    return tx.execute(sa.select(servers.c.id).join_from(members, servers, servers.c.uuid == members.c.server_uuid)
                      .where(members.c.group_id == group, servers.c.deleted == 0).limit(1)).first() is not None


# -- whose hosts must be told

def hosts_of(tx: Connection, groups: Iterable[int]) -> set[str]:
    """Where members of these groups are, or are coming to."""
    members = security_group_members
    return _hosts(tx, sa.select(members.c.server_uuid).where(members.c.group_id.in_(list(groups))))


def hosts_letting_in(tx: Connection, groups: Iterable[int]) -> set[str]:
    """Where servers are that let members of these groups in, as members."""
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


def letting_in(uuids: AnyColumn, *more: AnyColumn) -> tuple[sa.Select[AnyColumn], ...]:
    """The hosts of servers that let these in, for the groups they are in, and those where such a server comes from or
    goes to; with ``more`` columns. To be united."""
    others = (_MEMBER.join(_LET, _LET.c.source_id == _MEMBER.c.group_id)
              .join(_LETS_IN, _LETS_IN.c.group_id == _LET.c.group_id)
              .join(_OTHER, _OTHER.c.uuid == _LETS_IN.c.server_uuid))
    moved = others.join(migrations, sa.and_(migrations.c.server_uuid == _OTHER.c.uuid,
                                            migrations.c.status.not_in(OVER)))
    places = ((others, _OTHER.c.host), (moved, migrations.c.dest_compute), (moved, migrations.c.source_compute))
    return tuple(sa.select(host.label("host"), *more).select_from(where)
                 .where(_MEMBER.c.server_uuid.in_(uuids), _OTHER.c.deleted == 0, host.is_not(None))
                 .group_by(host) for where, host in places)


_LETTING_IN = sa.union(*letting_in(sa.bindparam("uuids", expanding=True)))


def hosts_letting_in_servers(tx: Connection, uuids: Sequence[str]) -> set[str]:
    """Where servers are, or are moving from or to, that let these in, for the groups they are in."""
    return {row.host for row in tx.execute(_LETTING_IN, {"uuids": list(uuids)})}
