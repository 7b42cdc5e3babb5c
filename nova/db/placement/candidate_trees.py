"""Provider trees for matching requests, read with a fixed number of statements for each page of trees."""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import NamedTuple

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from nova.db.models.api import (
    aggregate_hosts,
    aggregates,
    allocations,
    inventories,
    provider_aggregates,
    provider_traits,
    providers,
)
from nova.db.placement.conditions import DISABLED, has_trait, in_tree_of, is_member
from nova.db.placement.provider_trees import amount, used_of
from nova.db.sql.types import Columns
from nova.model.placement.candidates import Sharing
from nova.model.placement.providers import Amount, ProviderState, RequestGroup, ResourceRequest

SHARES = "MISC_SHARES_VIA_AGGREGATE"
PAGE = 1000
BOUND = 15_000

Tree = list[ProviderState]  # the root is first


class WantedProviders(NamedTuple):
    """The purpose of reading trees. ``disabled``: hosts whose nodes have that trait; ``limit``: the approximate number
    of solutions that is enough."""

    request: ResourceRequest
    disabled: Collection[str] = ()
    limit: int | None = None


def load(tx: Connection, roots: Sequence[int], disabled: Collection[str] = ()) -> list[Tree]:
    """Return trees by their roots' ids, in that order, in four statements (a few more for large trees)."""
    chosen = sa.or_(providers.c.id.in_(roots), providers.c.root_id.in_(roots))
    rows = tx.execute(sa.select(providers.c.id, providers.c.uuid, providers.c.name, providers.c.host,
                                providers.c.parent_id, providers.c.root_id).where(chosen)
                      .order_by(providers.c.id)).all() if roots else []
    amounts: dict[int, dict[str, Amount]] = {}
    traits: dict[int, list[str]] = {}
    members: dict[int, list[str]] = {}
    for keys in _parts([row.id for row in rows]):
        amounts |= _amounts(tx, keys)
        traits |= _traits(tx, keys)
        members |= _members(tx, keys)
    trees: dict[int, Tree] = {key: [] for key in roots}
    for row in rows:
        mine, node = traits.get(row.id, []), row.root_id is None
        one = ProviderState(
            id=row.id, uuid=row.uuid, name=row.name, parent_id=row.parent_id, amounts=amounts.get(row.id, {}),
            traits=(*mine, DISABLED) if node and row.host in disabled and DISABLED not in mine else tuple(mine),
            aggregates=tuple(members.get(row.id, ())))
        tree = trees.setdefault(row.id if node else row.root_id, [])
        if node:
            tree.insert(0, one)
        else:
            tree.append(one)
    return [tree for tree in trees.values() if tree and tree[0].parent_id is None]


def _parts(keys: Sequence[int]) -> Iterator[Sequence[int]]:
    """Split keys so that a statement can bind them, even twice."""
    for start in range(0, len(keys), BOUND):
        yield keys[start:start + BOUND]


def _amounts(tx: Connection, keys: Sequence[int]) -> dict[int, dict[str, Amount]]:
    used = used_of(allocations.c.provider_id.in_(keys))
    found: dict[int, dict[str, Amount]] = {}
    for row in tx.execute(
            sa.select(inventories, sa.func.coalesce(used.c.used, 0).label("used"))
            .select_from(inventories.outerjoin(used, sa.and_(used.c.provider_id == inventories.c.provider_id,
                                                             used.c.resource_class == inventories.c.resource_class)))
            .where(inventories.c.provider_id.in_(keys)).order_by(inventories.c.resource_class)):
        found.setdefault(row.provider_id, {})[row.resource_class] = amount(
            row.total, row.reserved, row.allocation_ratio, int(row.used), row)
    return found


def _traits(tx: Connection, keys: Sequence[int]) -> dict[int, list[str]]:
    return _listed(tx.execute(sa.select(provider_traits.c.provider_id, provider_traits.c.trait)
                              .where(provider_traits.c.provider_id.in_(keys)).order_by(provider_traits.c.trait)))


def _members(tx: Connection, keys: Sequence[int]) -> dict[int, list[str]]:
    """Return the aggregates of providers: set through the Placement API, and for a node those of its host."""
    given = (sa.select(provider_aggregates.c.provider_id, provider_aggregates.c.aggregate_uuid)
             .where(provider_aggregates.c.provider_id.in_(keys)))
    by_host = (sa.select(providers.c.id, aggregates.c.uuid)
               .join_from(providers, aggregate_hosts, aggregate_hosts.c.host == providers.c.host)
               .join(aggregates, aggregates.c.id == aggregate_hosts.c.aggregate_id)
               .where(providers.c.root_id.is_(None), providers.c.id.in_(keys)))
    return _listed(tx.execute(given.union(by_host)))


def _listed(rows: Iterable[sa.Row[int, str]]) -> dict[int, list[str]]:
    found: dict[int, list[str]] = {}
    for key, value in rows:
        found.setdefault(key, []).append(value)
    return found


# -- providers that share resources through aggregates

def sharing(tx: Connection, disabled: Collection[str] = ()) -> list[Sharing]:
    """Return the providers that share resources (trait MISC_SHARES_VIA_AGGREGATE), each with its root and its tree's
    UUIDs."""
    rows = tx.execute(sa.select(providers.c.id, sa.func.coalesce(providers.c.root_id, providers.c.id).label("root"))
                      .where(has_trait(providers, [SHARES], ())).order_by(providers.c.id)).all()
    if not rows:
        return []
    trees = {tree[0].id: tree for tree in load(tx, sorted({row.root for row in rows}), disabled)}
    found = []
    for row in rows:
        tree = trees.get(row.root, [])
        found += [Sharing(one, tree[0], frozenset(each.uuid for each in tree)) for one in tree if one.id == row.id]
    return found


# -- trees that may match a request

def pages(tx: Connection, wanted: WantedProviders, shared: Sequence[Sharing]) -> Iterator[list[Tree]]:
    """Yield trees that may match the request, in creation order, page by page. The statement excludes trees that cannot
    match, so that the first results cost little in a cloud of any size."""
    possible = _possible(wanted, shared)
    size = PAGE if wanted.limit is None else min(PAGE, wanted.limit + 10)
    after = 0
    while True:
        roots = list(tx.execute(sa.select(_root.c.id).where(_root.c.root_id.is_(None), _root.c.id > after, *possible)
                                .order_by(_root.c.id).limit(size)).scalars())
        if roots:
            yield load(tx, roots, wanted.disabled)
        if len(roots) < size:
            return
        after, size = roots[-1], min(PAGE, size * 4)


_root, _child = providers.alias("root"), providers.alias("child")


def _possible(wanted: WantedProviders, shared: Sequence[Sharing]) -> list[sa.ColumnElement[bool]]:
    request = wanted.request
    found = [has_trait(_root, [trait], wanted.disabled) for trait in request.root_required]
    if request.root_forbidden:
        found.append(sa.not_(has_trait(_root, request.root_forbidden, wanted.disabled)))
    for group in request.groups:
        found += _of_group(group, wanted, shared)
    return found


def _of_group(group: RequestGroup, wanted: WantedProviders, shared: Sequence[Sharing]) -> list[sa.ColumnElement[bool]]:
    """Return a condition for each item that the group requests: a provider of the tree has it. Items that sharing
    providers may supply have none."""
    found = []
    outside = [one.provider for one in shared]
    for name, asked in group.resources.items():
        if asked and not any(name in one.amounts for one in outside):
            found.append(_somewhere(functools.partial(_has_room, name=name, asked=asked, wanted=wanted)))
    if group.in_tree is not None and not any(group.in_tree in one.tree for one in shared):
        found.append(_root.c.id.in_(sa.select(sa.func.coalesce(providers.c.root_id, providers.c.id))
                                    .where(in_tree_of(group.in_tree))))
    for any_of in group.required:
        if not any(set(any_of) & set(one.traits) for one in outside):
            found.append(_somewhere(functools.partial(has_trait, traits=any_of, disabled=wanted.disabled)))
    for uuids in group.member_of:
        if not any(set(uuids) & {*one.provider.aggregates, *one.root.aggregates} for one in shared):
            found.append(_somewhere(functools.partial(is_member, uuids=uuids)))
    return found


def _somewhere(condition: Callable[[sa.FromClause], sa.ColumnElement[bool]]) -> sa.ColumnElement[bool]:
    """Return the condition that the root, or a provider below it, meets the condition: each part uses its own index."""
    return sa.or_(condition(_root), _any(sa.select(_child.c.id).where(_child.c.root_id == _root.c.id,
                                                                      condition(_child)), _root))


def _any(query: sa.Select[*Columns], of: sa.FromClause) -> sa.ColumnElement[bool]:
    """Return EXISTS, evaluated for one row of ``of`` at a time. Otherwise databases would first find all matching rows,
    which costs more the larger the cloud is, even for a few results."""
    return query.limit(1).correlate(of).scalar_subquery().is_not(None)


def _has_room(of: sa.FromClause, name: str, asked: int, wanted: WantedProviders) -> sa.ColumnElement[bool]:
    """Return the condition that the inventory, and with a limit also the free capacity, is sufficient. It allows one
    more than the capacity: database arithmetic differs from Python's, which decides."""
    have = inventories.alias()
    known = [have.c.provider_id == of.c.id, have.c.resource_class == name, have.c.min_unit <= asked,
             have.c.max_unit >= asked]
    room = (have.c.total - have.c.reserved) * have.c.allocation_ratio + 1
    if wanted.limit is None:
        return _any(sa.select(have.c.provider_id).where(*known, room >= asked), of)
    used = (sa.select(sa.func.coalesce(sa.func.sum(allocations.c.used), 0))
            .where(allocations.c.provider_id == have.c.provider_id, allocations.c.resource_class == name)
            .correlate(have).scalar_subquery())
    return _any(sa.select(have.c.provider_id).where(*known, room >= used + asked), of)


__all__ = ["Tree", "WantedProviders", "load", "pages", "sharing"]
