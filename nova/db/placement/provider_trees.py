"""Provider trees: a node's data beyond its own amounts, and the providers below it.

Each read takes a fixed number of statements for any number of trees.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple, TypeVar

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
from nova.model.numa.topology import HostTopology, TopologyClaim
from nova.model.placement.providers import Amount, ProviderState

if TYPE_CHECKING:
    from nova.db.host.hosts import ClassRow


class ProviderTreeFacts(NamedTuple):
    """A root's data beyond its amounts. ``traits`` and ``aggregates`` depend on the reader's request."""

    children: tuple[ProviderState, ...] = ()
    packings: tuple[TopologyClaim, ...] = ()
    traits: tuple[str, ...] = ()
    aggregates: tuple[str, ...] = ()
    topology: HostTopology | None = None


NOTHING = ProviderTreeFacts()


T = TypeVar("T")


def amount(total: int, reserved: int, ratio: float, used: int,
           limits: sa.Row[*tuple[object, ...]] | ClassRow) -> Amount:
    """Return an amount. ``limits``: a row with min_unit, max_unit and step_size."""
    return Amount(capacity=int((total - reserved) * ratio), used=used, min_unit=limits.min_unit,
                  max_unit=limits.max_unit, step_size=limits.step_size)


def used_of(chosen: sa.ColumnElement[bool]) -> sa.Subquery:
    """Return a subquery: usage and consumers by provider and class (``chosen``: a condition on provider ids)."""
    return (sa.select(allocations.c.provider_id, allocations.c.resource_class,
                      sa.func.sum(allocations.c.used).label("used"), sa.func.count().label("consumers"))
            .where(chosen).group_by(allocations.c.provider_id, allocations.c.resource_class).subquery())


def tree_facts(tx: Connection, roots: Sequence[int] | None = None, whole: bool = False) -> dict[int, ProviderTreeFacts]:
    """Return root -> its data: for some roots, or for all that have any. ``whole``: include reported data of the roots
    (traits, topology, the aggregates of the host), which schedulers know from another source."""
    children = _children(tx, roots)
    below = [one.id for ones in children.values() for one in ones]
    traits, members = _traits(tx, roots, below, whole), _aggregates(tx, roots, below)
    packings = _packings(tx, roots)
    hosts = _hosts(tx, roots) if whole else {}
    keys = {*children, *packings, *hosts, *(traits.keys() | members.keys()).difference(below)}
    return {key: ProviderTreeFacts(
        children=tuple(_with(one, traits, members) for one in children.get(key, ())),
        packings=tuple(packings.get(key, ())), traits=tuple(traits.get(key, ())),
        aggregates=(*members.get(key, ()), *(hosts[key][1] if key in hosts else ())),
        topology=hosts[key][0] if key in hosts else None) for key in keys}


def _with(one: ProviderState, traits: Mapping[int, list[str]], members: Mapping[int, list[str]]) -> ProviderState:
    return ProviderState(id=one.id, uuid=one.uuid, name=one.name, parent_id=one.parent_id, amounts=one.amounts,
                         traits=tuple(traits.get(one.id, ())), aggregates=tuple(members.get(one.id, ())))


def _children(tx: Connection, roots: Sequence[int] | None) -> dict[int, list[ProviderState]]:
    """Return root -> the providers below it, with their amounts."""
    below = providers.c.root_id.is_not(None) if roots is None else providers.c.root_id.in_(list(roots))
    used = used_of(allocations.c.provider_id.in_(sa.select(providers.c.id).where(below)))
    rows = tx.execute(
        sa.select(providers.c.id, providers.c.uuid, providers.c.name, providers.c.parent_id, providers.c.root_id,
                  inventories.c.resource_class, inventories.c.total, inventories.c.reserved,
                  inventories.c.allocation_ratio, inventories.c.min_unit, inventories.c.max_unit,
                  inventories.c.step_size, sa.func.coalesce(used.c.used, 0).label("used"))
        .select_from(providers.outerjoin(inventories, inventories.c.provider_id == providers.c.id)
                     .outerjoin(used, sa.and_(used.c.provider_id == inventories.c.provider_id,
                                              used.c.resource_class == inventories.c.resource_class)))
        .where(below).order_by(providers.c.id))
    found: dict[int, tuple[int, ProviderState, dict[str, Amount]]] = {}
    for row in rows:
        amounts = found.setdefault(row.id, (row.root_id, ProviderState(
            id=row.id, uuid=row.uuid, name=row.name, parent_id=row.parent_id), {}))[2]
        if row.resource_class is not None:
            amounts[row.resource_class] = amount(row.total, row.reserved, row.allocation_ratio, int(row.used), row)
    of_root: dict[int, list[ProviderState]] = {}
    for root, one, amounts in found.values():
        of_root.setdefault(root, []).append(ProviderState(
            id=one.id, uuid=one.uuid, name=one.name, parent_id=one.parent_id, amounts=amounts))
    return of_root


def _traits(tx: Connection, roots: Sequence[int] | None, below: Sequence[int], whole: bool) -> dict[int, list[str]]:
    table = provider_traits
    mine = sa.true() if roots is None else table.c.provider_id.in_(list(roots))
    asked = mine if whole else sa.and_(mine, table.c.reported == sa.false())
    if below:  # a subquery for all, since a statement cannot bind as many ids as a large cloud has
        every = sa.select(providers.c.id).where(providers.c.root_id.is_not(None))
        asked = sa.or_(asked, table.c.provider_id.in_(every if roots is None else list(below)))
    return _listed(tx.execute(sa.select(table.c.provider_id, table.c.trait).where(asked).order_by(table.c.trait)))


def _aggregates(tx: Connection, roots: Sequence[int] | None, below: Sequence[int]) -> dict[int, list[str]]:
    table = provider_aggregates
    asked = sa.true() if roots is None else table.c.provider_id.in_([*roots, *below])
    return _listed(tx.execute(sa.select(table.c.provider_id, table.c.aggregate_uuid).where(asked)
                              .order_by(table.c.aggregate_uuid)))


def _packings(tx: Connection, roots: Sequence[int] | None) -> dict[int, list[TopologyClaim]]:
    table = allocations
    asked: sa.ColumnElement[bool] = table.c.packing.is_not(None)
    if roots is not None:
        asked = sa.and_(table.c.provider_id.in_(list(roots)), asked)
    return _listed(tx.execute(sa.select(table.c.provider_id, table.c.packing).where(asked)
                              .order_by(table.c.provider_id, table.c.consumer)))


def _hosts(tx: Connection, roots: Sequence[int] | None) -> dict[int, tuple[HostTopology | None, list[str]]]:
    """Return root -> topology, and the UUIDs of its host's aggregates."""
    asked = providers.c.root_id.is_(None) if roots is None else providers.c.id.in_(list(roots))
    rows = tx.execute(
        sa.select(providers.c.id, providers.c.topology, aggregates.c.uuid)
        .select_from(providers.outerjoin(aggregate_hosts, aggregate_hosts.c.host == providers.c.host)
                     .outerjoin(aggregates, aggregates.c.id == aggregate_hosts.c.aggregate_id)).where(asked))
    found: dict[int, tuple[HostTopology | None, list[str]]] = {}
    for row in rows:
        uuids = found.setdefault(row.id, (row.topology, []))[1]
        if row.uuid is not None:
            uuids.append(row.uuid)
    return found


def _listed(rows: Iterable[sa.Row[int, T]]) -> dict[int, list[T]]:
    found: dict[int, list[T]] = {}
    for key, value in rows:
        found.setdefault(key, []).append(value)
    return found


__all__ = ["NOTHING", "ProviderTreeFacts", "amount", "tree_facts", "used_of"]
