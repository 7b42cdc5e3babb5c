"""Server groups and their members. A server joins when its ledger row is opened, and leaves when that is closed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from nova import errors
from nova.db.models.api import allocations, ledger, providers, server_group_members, server_groups
from nova.db.sql.statements import insert_all, insert_ignoring
from nova.db.sql.types import AnyRow, Columns, utc_now
from nova.model.base import Page, Scope
from nova.model.scheduling.decisions import PlacementGroup
from nova.model.server.server_groups import AFFINITY, HARD_POLICIES, MAX_PER_HOST, NewServerGroup, ServerGroup

_members, _groups = server_group_members, server_groups


# -- groups

def insert(tx: Connection, group: NewServerGroup, project_id: str, user_id: str) -> None:
    """Insert a group, unless one with this UUID exists."""
    insert_ignoring(tx, _groups, [{
        "uuid": group.uuid, "project_id": project_id, "user_id": user_id, "name": group.name, "policy": group.policy,
        "rules": group.rules, "created_at": utc_now()}])


def usage(tx: Connection, project_id: str, user_id: str | None) -> dict[str, dict[str, int]]:
    """Return the number of groups of the project and (key "user") of one user in it."""
    mine = sa.func.coalesce(sa.func.sum(sa.case((_groups.c.user_id == (user_id or ""), 1), else_=0)), 0)
    row = tx.execute(sa.select(sa.func.count(), mine).where(_groups.c.project_id == project_id)).one()
    return {"project": {"server_groups": int(row[0])}, "user": {"server_groups": int(row[1])}}


def _within(query: sa.Select[*Columns], scope: Scope) -> sa.Select[*Columns]:
    return query if scope.project_id is None else query.where(_groups.c.project_id == scope.project_id)


def select(tx: Connection, scope: Scope, page: Page) -> tuple[ServerGroup, ...]:
    """Return a page of groups in creation order, in two statements."""
    rows = tx.execute(_within(sa.select(_groups), scope).order_by(_groups.c.id).limit(page.limit).offset(page.offset))
    return _values(tx, rows.all())


def get(tx: Connection, uuid: str, scope: Scope) -> ServerGroup:
    """Return a group with its members. Raises server.ServerGroupNotFound if it does not exist or is outside the
    scope."""
    row = tx.execute(_within(sa.select(_groups).where(_groups.c.uuid == uuid), scope)).one_or_none()
    if row is None:
        raise errors.server.ServerGroupNotFound(group=uuid)
    return _values(tx, [row])[0]


def _values(tx: Connection, rows: Sequence[sa.Row[*tuple[object, ...]]]) -> tuple[ServerGroup, ...]:
    members: dict[int, list[str]] = {row.id: [] for row in rows}
    if rows:
        # in the order of joining: ledger keys increase with each server
        found = tx.execute(sa.select(_members.c.group_id, _members.c.server_uuid)
                           .join_from(_members, ledger, ledger.c.server_uuid == _members.c.server_uuid)
                           .where(_members.c.group_id.in_(members)).order_by(ledger.c.id))
        for group_id, server_uuid in found:
            members[group_id].append(server_uuid)
    return tuple(ServerGroup(uuid=row.uuid, project_id=row.project_id, user_id=row.user_id, name=row.name,
                             policy=row.policy, rules=row.rules, members=tuple(members[row.id]),
                             created_at=row.created_at) for row in rows)


def delete(tx: Connection, uuid: str, scope: Scope) -> None:
    """Delete the group and its memberships; its servers stay unchanged. Raises server.ServerGroupNotFound."""
    row = _lock(tx, uuid, scope)
    tx.execute(sa.delete(_members).where(_members.c.group_id == row.id))
    tx.execute(sa.delete(_groups).where(_groups.c.id == row.id))


def _lock(tx: Connection, uuid: str, scope: Scope) -> sa.Row[*tuple[object, ...]]:
    row = tx.execute(_within(sa.select(_groups).where(_groups.c.uuid == uuid), scope).with_for_update()).one_or_none()
    if row is None:
        raise errors.server.ServerGroupNotFound(group=uuid)
    return row


# -- members

def room_for(tx: Connection, uuid: str, scope: Scope, user_id: str) -> tuple[int, int]:
    """Return the group's key and its number of members of this user. Locks the group, so that both stay valid. Raises
    server.ServerGroupNotFound."""
    key = int(_lock(tx, uuid, scope).id)
    count = tx.execute(sa.select(sa.func.count()).where(_members.c.group_id == key, _members.c.user_id == user_id))
    return key, int(count.scalar_one())


def join(tx: Connection, key: int, uuids: Sequence[str], user_id: str) -> None:
    """Add servers of that user to the group. A server is in one group at most: a second row raises IntegrityError."""
    insert_all(tx, _members, [{"server_uuid": uuid, "group_id": key, "user_id": user_id} for uuid in uuids])


def leave(tx: Connection, uuids: Sequence[str]) -> None:
    """Remove servers from their groups; servers without a group are ignored."""
    tx.execute(sa.delete(_members).where(_members.c.server_uuid.in_(uuids)))


def group_of(tx: Connection, server_uuid: str) -> str | None:
    """Return the UUID of a server's group, or None."""
    return tx.execute(sa.select(_groups.c.uuid).join_from(_groups, _members, _members.c.group_id == _groups.c.id)
                      .where(_members.c.server_uuid == server_uuid)).scalar_one_or_none()


# -- placement

#: Allocations of a member: its own, and those of its migration for the source, or for the end it may return to.
_held = sa.or_(allocations.c.consumer == _members.c.server_uuid, allocations.c.moving == _members.c.server_uuid)


def placement(tx: Connection, server_uuids: Sequence[str]) -> PlacementGroup | None:
    """Return the group of these servers (all are in the same one) and the hosts of its other members, in one
    statement. None if the group was deleted."""
    mine = sa.select(_members.c.group_id).where(_members.c.server_uuid.in_(server_uuids))
    rows = tx.execute(
        sa.select(_groups.c.uuid, _groups.c.policy, _groups.c.rules, _members.c.server_uuid, providers.c.host)
        .select_from(_groups.outerjoin(_members, _members.c.group_id == _groups.c.id)
                     .outerjoin(allocations, _held)
                     .outerjoin(providers, providers.c.id == allocations.c.provider_id))
        .where(_groups.c.id.in_(mine))).all()
    if not rows:
        return None
    places = {(row.server_uuid, row.host) for row in rows if row.host and row.server_uuid not in server_uuids}
    return PlacementGroup(uuid=rows[0].uuid, policy=rows[0].policy, max_per_host=rows[0].rules.get(MAX_PER_HOST, 1),
                          hosts=dict(Counter(host for _, host in places)))


class HardGroups:
    """The groups with a hard policy that some servers are in, and the hosts of all their members.

    Locks the groups' rows until the transaction ends, so that no other claim can change the members in between.
    """

    def __init__(self, tx: Connection, server_uuids: Iterable[str]) -> None:
        wanted = list(server_uuids)
        self._groups: dict[int, AnyRow] = {}
        self._group_of: dict[str, int] = {}
        self._places: dict[int, dict[str, set[str]]] = {}
        if wanted:
            self._load(tx, wanted)

    def _load(self, tx: Connection, wanted: Sequence[str]) -> None:
        theirs = sa.select(_members.c.group_id).where(_members.c.server_uuid.in_(wanted))
        rows = tx.execute(sa.select(_groups).where(_groups.c.id.in_(theirs), _groups.c.policy.in_(HARD_POLICIES))
                          .order_by(_groups.c.id).with_for_update())
        self._groups = {row.id: row for row in rows}
        if not self._groups:
            return
        found = tx.execute(
            sa.select(_members.c.group_id, _members.c.server_uuid, providers.c.host)
            .select_from(_members.outerjoin(allocations, _held)
                         .outerjoin(providers, providers.c.id == allocations.c.provider_id))
            .where(_members.c.group_id.in_(self._groups)))
        for group_id, server_uuid, host in found:
            self._group_of[server_uuid] = group_id
            if host:
                self.place(server_uuid, host)

    def place(self, server_uuid: str, host: str) -> None:
        """Record that the server is on this host, too."""
        group = self._group_of.get(server_uuid)
        if group is not None:
            self._places.setdefault(group, {}).setdefault(server_uuid, set()).add(host)

    def refusal(self, server_uuid: str, host: str) -> errors.ClaimConflict | None:
        """Return the error if the group's policy forbids the server on this host; None if it is allowed."""
        key = self._group_of.get(server_uuid)
        if key is None:
            return None
        group = self._groups[key]
        others: Mapping[str, set[str]] = {uuid: hosts for uuid, hosts in self._places.get(key, {}).items()
                                          if uuid != server_uuid}
        here = sum(host in hosts for hosts in others.values())
        if group.policy == AFFINITY:
            why = None if here or not others else "its members run on other hosts"
        else:
            most = group.rules.get(MAX_PER_HOST, 1)
            why = None if here < most else f"{here} of its members are on that host, and the maximum is {most}"
        return errors.host.ClaimGroup(group=group.uuid, policy=group.policy, why=why) if why else None
