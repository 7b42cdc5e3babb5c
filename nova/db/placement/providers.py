"""Resource providers: listed, created, renamed, moved below another, deleted."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import NamedTuple

import sqlalchemy as sa
from sqlalchemy import exc
from sqlalchemy.engine import Connection

from nova import errors, failures
from nova.db.models.api import (
    allocations,
    inventories,
    provider_aggregates,
    provider_traits,
    providers,
    stamps,
)
from nova.db.placement import conditions, locks
from nova.db.placement.locks import Locked
from nova.db.placement.provider_trees import amount, used_of
from nova.db.sql.statements import insert_ignoring
from nova.db.sql.types import utc_now
from nova.model.base import Time
from nova.model.placement.providers import NewProvider, Provider, ProviderQuery, ProviderUpdate, RequestGroup

# -- reads

_parent, _root = providers.alias("parent"), providers.alias("root")
_SHOWN = (sa.select(providers.c.id, providers.c.uuid, providers.c.name, providers.c.generation,
                    _parent.c.uuid.label("parent_uuid"), _root.c.uuid.label("root_uuid"), providers.c.updated_at)
          .select_from(providers.outerjoin(_parent, _parent.c.id == providers.c.parent_id)
                       .outerjoin(_root, _root.c.id == providers.c.root_id)))


class _Shown(NamedTuple):
    id: int
    uuid: str
    name: str
    generation: int
    parent_uuid: str | None
    root_uuid: str | None
    updated_at: Time | None


def _value(row: _Shown) -> Provider:
    return Provider(uuid=row.uuid, name=row.name, generation=row.generation, parent_uuid=row.parent_uuid,
                    root_uuid=row.root_uuid or row.uuid, updated_at=row.updated_at)


def get(tx: Connection, uuid: str) -> Provider:
    """Return a provider. Raises placement.ResourceProviderNotFound."""
    row = tx.execute(_SHOWN.where(providers.c.uuid == uuid)).one_or_none()
    if row is None:
        raise errors.placement.ResourceProviderNotFound(uuid=uuid)
    return _value(_Shown._make(row))


def select(tx: Connection, query: ProviderQuery, disabled: Collection[str] = ()) -> tuple[Provider, ...]:
    """Return the providers that meet all conditions, in creation order, in at most two statements."""
    group = query.group
    wanted = [column == value for column, value in ((providers.c.name, query.name), (providers.c.uuid, query.uuid))
              if value is not None]
    if group.in_tree is not None:
        wanted.append(conditions.in_tree_of(group.in_tree))
    found = tx.execute(_SHOWN.where(*wanted, *_conditions(group, disabled)).order_by(providers.c.id))
    rows = list(map(_Shown._make, found))
    if group.resources and rows:
        able = _with_room(tx, group.resources)
        rows = [row for row in rows if row.id in able]
    return tuple(_value(row) for row in rows)


def _conditions(group: RequestGroup, disabled: Collection[str]) -> list[sa.ColumnElement[bool]]:
    wanted = [conditions.has_trait(providers, any_of, disabled) for any_of in group.required]
    wanted += [conditions.is_member(providers, any_of) for any_of in group.member_of]
    if group.forbidden:
        wanted.append(sa.not_(conditions.has_trait(providers, group.forbidden, disabled)))
    if group.not_member_of:
        wanted.append(sa.not_(conditions.is_member(providers, group.not_member_of)))
    return wanted


def _with_room(tx: Connection, resources: Mapping[str, int]) -> set[int]:
    """Return the ids of providers with capacity for all resources. Computed in Python, as for claims: a database's
    arithmetic with ratios differs in the last digit."""
    used = used_of(allocations.c.resource_class.in_(list(resources)))
    rows = tx.execute(
        sa.select(inventories, sa.func.coalesce(used.c.used, 0).label("used"))
        .select_from(inventories.outerjoin(used, sa.and_(used.c.provider_id == inventories.c.provider_id,
                                                         used.c.resource_class == inventories.c.resource_class)))
        .where(inventories.c.resource_class.in_(list(resources))))
    met: dict[int, int] = {}
    for row in rows:
        have = amount(row.total, row.reserved, row.allocation_ratio, int(row.used), row)
        met[row.provider_id] = met.get(row.provider_id, 0) + have.has_room(resources[row.resource_class])
    return {key for key, count in met.items() if count == len(resources)}


# -- writes

NAMES = "placement.names"


def _lock_names(tx: Connection) -> None:
    """Serialize name changes: a name is checked, and then taken."""
    turn = sa.update(stamps).where(stamps.c.name == NAMES).values(version=stamps.c.version + 1)
    if not tx.execute(turn).rowcount:
        insert_ignoring(tx, stamps, [{"name": NAMES, "version": 1}])
        tx.execute(turn)


def _check_name(tx: Connection, name: str, but: str = "") -> None:
    if tx.execute(sa.select(providers.c.id).where(providers.c.name == name, providers.c.uuid != but)).first():
        raise errors.placement.DuplicateName(what="name", value=name)


def insert(tx: Connection, new: NewProvider) -> tuple[Provider, list[str]]:
    """Insert a provider; return it, and the hosts of its tree. Raises placement.DuplicateName, or
    placement.ResourceProviderBadParent if the parent does not exist."""
    _lock_names(tx)
    parent = _parent_of(tx, new)
    _check_name(tx, new.name)
    with failures.replaced(exc.IntegrityError, lambda _: errors.placement.DuplicateName(what="uuid", value=new.uuid)):
        tx.execute(sa.insert(providers).values(
            uuid=new.uuid, name=new.name, host="", host_id="", generation=0, updated_at=utc_now(),
            parent_id=parent.id if parent else None, root_id=parent.root if parent else None))
    ends = [parent] if parent else []
    _count_roots(tx, ends)
    return get(tx, new.uuid), locks.hosts_of(ends)


def _parent_of(tx: Connection, new: NewProvider) -> Locked | None:
    if new.parent_uuid is None:
        return None
    if new.parent_uuid == new.uuid:
        raise errors.placement.ResourceProviderBadParent(why="parent provider UUID cannot be same as UUID.")
    found = locks.trees(tx, [new.parent_uuid]).get(new.parent_uuid)
    if found is None:
        raise errors.placement.ResourceProviderBadParent(why=f"parent provider UUID {new.parent_uuid} does not exist.")
    return found


def update(tx: Connection, change: ProviderUpdate) -> tuple[Provider, list[str]]:
    """Change the name or parent; return the provider, and the hosts whose trees changed. Raises
    placement.ResourceProviderNotFound, placement.DuplicateName, placement.ResourceProviderBadParent,
    placement.ResourceProviderHostsOwn."""
    _lock_names(tx)
    asked = [change.uuid, *([change.parent_uuid] if change.parent_asked and change.parent_uuid else [])]
    found = locks.trees(tx, asked)
    one = found.get(change.uuid)
    if one is None:
        raise errors.placement.ResourceProviderNotFound(uuid=change.uuid)
    moved: list[str] = []
    if change.parent_asked:
        moved = _move(tx, one, change, found.get(change.parent_uuid or ""))
    if change.name != one.name:
        if one.own_host:
            raise errors.placement.ResourceProviderHostsOwn(uuid=one.uuid, host=one.own_host)
        _check_name(tx, change.name, one.uuid)
        tx.execute(sa.update(providers).where(providers.c.id == one.id).values(name=change.name, updated_at=utc_now()))
    return get(tx, change.uuid), moved


def _move(tx: Connection, one: Locked, change: ProviderUpdate, parent: Locked | None) -> list[str]:
    """Move a provider below another parent; return the hosts whose trees changed. Both trees are locked."""
    if change.parent_uuid is not None and parent is None:
        raise errors.placement.ResourceProviderBadParent(why=f"parent provider UUID {change.parent_uuid} does not "
                                                         "exist.")
    if (parent.id if parent else None) == one.parent_id:
        return []
    if one.own_host:
        raise errors.placement.ResourceProviderHostsOwn(uuid=one.uuid, host=one.own_host)
    if one.parent_id is not None and not change.may_reparent:
        what = "re-parenting" if parent else "un-parenting"
        raise errors.placement.ResourceProviderBadParent(why=f"{what} a provider is not allowed before version 1.37.")
    below = _below(tx, one)
    if parent is not None and parent.id in below:
        raise errors.placement.ResourceProviderBadParent(why="creating loop in the provider tree is not allowed: "
                                                         f"{parent.uuid} is below {one.uuid}.")
    root = parent.root if parent else one.id
    tx.execute(sa.update(providers).where(providers.c.id.in_(sorted(below - {one.id}))).values(root_id=root))
    tx.execute(sa.update(providers).where(providers.c.id == one.id).values(
        parent_id=parent.id if parent else None, root_id=root if parent else None, updated_at=utc_now()))
    ends = [one, *([parent] if parent else [])]
    _count_roots(tx, ends)
    return locks.hosts_of(ends)


def _below(tx: Connection, one: Locked) -> set[int]:
    """Return the ids of the provider and all providers below it."""
    parents = {row.id: row.parent_id for row in tx.execute(
        sa.select(providers.c.id, providers.c.parent_id).where(providers.c.root_id == one.root))}
    found = {one.id}
    while more := {key for key, parent in parents.items() if parent in found} - found:
        found |= more
    return found


def _count_roots(tx: Connection, ends: Collection[Locked]) -> None:
    """Increment the root's generation of each host's tree whose structure changed."""
    keys = sorted({one.root for one in ends if one.host})
    if keys:
        tx.execute(sa.update(providers).where(providers.c.id.in_(keys)).values(generation=providers.c.generation + 1))


def delete(tx: Connection, uuid: str, gone: str = "") -> list[str]:
    """Delete a provider; return the hosts of its tree. ``gone``: a removed host, whose own providers may be deleted.
    Raises placement.ResourceProviderNotFound, placement.ResourceProviderCannotDeleteParent,
    placement.ResourceProviderInuse, placement.ResourceProviderHostsOwn."""
    one = locks.tree(tx, uuid)
    if tx.execute(sa.select(providers.c.id).where(providers.c.parent_id == one.id).limit(1)).first():
        raise errors.placement.ResourceProviderCannotDeleteParent(uuid=uuid)
    if tx.execute(sa.select(allocations.c.consumer).where(allocations.c.provider_id == one.id).limit(1)).first():
        raise errors.placement.ResourceProviderInuse(uuid=uuid)
    if one.own_host and one.own_host != gone:
        raise errors.placement.ResourceProviderHostsOwn(uuid=uuid, host=one.own_host)
    for table in (inventories, provider_traits, provider_aggregates):
        tx.execute(sa.delete(table).where(table.c.provider_id == one.id))
    tx.execute(sa.delete(providers).where(providers.c.id == one.id))
    _count_roots(tx, [one])
    return locks.hosts_of([one])
