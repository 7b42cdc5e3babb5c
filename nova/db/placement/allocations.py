"""Allocations as the API shows them: of servers and their migrations from the ledger, of others from their own table.

A server's generation is its epoch. A migration has its server's project, user and generation.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple, TypedDict

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from nova import errors
from nova.db.models.api import allocations, consumers, ledger, providers
from nova.model.placement.providers import (
    ConsumerAllocations,
    PlacementUsageQuery,
    ProviderAllocation,
    ProviderConsumers,
    UsageGroup,
)

INSTANCE, MIGRATION, UNKNOWN, ALL = "INSTANCE", "MIGRATION", "unknown", "all"

_SERVER = sa.func.coalesce(allocations.c.moving, allocations.c.consumer)
_ROWS = (sa.select(allocations.c.consumer, allocations.c.resource_class, allocations.c.used, allocations.c.moving,
                   providers.c.uuid, providers.c.generation, consumers.c.project_id, consumers.c.user_id,
                   consumers.c.consumer_type, consumers.c.generation.label("consumer_generation"),
                   consumers.c.mappings, ledger.c.project_id.label("server_project"),
                   ledger.c.user_id.label("server_user"), ledger.c.epoch)
         .select_from(allocations.join(providers, providers.c.id == allocations.c.provider_id)
                      .outerjoin(consumers, consumers.c.uuid == allocations.c.consumer)
                      .outerjoin(ledger, ledger.c.server_uuid == _SERVER))
         .order_by(allocations.c.consumer, providers.c.id, allocations.c.resource_class))


def of_consumer(tx: Connection, consumer: str) -> ConsumerAllocations:
    """Return a consumer's allocations; empty if it has none."""
    found = _values(tx.execute(_ROWS.where(allocations.c.consumer == consumer)))
    return found[0] if found else ConsumerAllocations(consumer=consumer, generation=None)


def of_provider(tx: Connection, uuid: str) -> ProviderConsumers:
    """Return the allocations of one provider, by consumer. Raises placement.ResourceProviderNotFound."""
    one = tx.execute(sa.select(providers.c.id, providers.c.generation).where(providers.c.uuid == uuid)).one_or_none()
    if one is None:
        raise errors.placement.ResourceProviderNotFound(uuid=uuid)
    return ProviderConsumers(uuid=uuid, generation=one.generation, consumers=tuple(
        _values(tx.execute(_ROWS.where(allocations.c.provider_id == one.id)))))


class _Allocation(NamedTuple):
    """A row of ``_ROWS``: an allocation with its provider and its consumer, or the server that it belongs to."""

    consumer: str
    resource_class: str
    used: int
    moving: str | None
    uuid: str
    generation: int
    project_id: str | None
    user_id: str | None
    consumer_type: str | None
    consumer_generation: int | None
    mappings: Mapping[str, Sequence[str]] | None
    server_project: str | None
    server_user: str | None
    epoch: int | None


def _values(rows: Iterable[sa.Row[*tuple[object, ...]]]) -> list[ConsumerAllocations]:
    """Group rows by consumer, in order."""
    of: dict[str, list[_Allocation]] = {}
    for row in map(_Allocation._make, rows):
        of.setdefault(row.consumer, []).append(row)
    return [_consumer(uuid, mine) for uuid, mine in of.items()]


def _consumer(uuid: str, rows: list[_Allocation]) -> ConsumerAllocations:
    held: dict[str, dict[str, int]] = {}
    for row in rows:
        held.setdefault(row.uuid, {})[row.resource_class] = row.used
    generations = {row.uuid: row.generation for row in rows}
    first = rows[0]
    met = {provider: tuple(suffix for suffix, uuids in (first.mappings or {}).items() if provider in uuids)
           for provider in held}
    return ConsumerAllocations(
        consumer=uuid, **_owner(first),
        allocations=tuple(ProviderAllocation(provider_uuid=provider, resources=resources, mappings=met[provider],
                                             generation=generations[provider])
                          for provider, resources in held.items()))


class _Owner(TypedDict):
    project_id: str
    user_id: str
    consumer_type: str | None
    generation: int


def _owner(row: _Allocation) -> _Owner:
    if row.consumer_generation is not None:
        return {"project_id": row.project_id or "", "user_id": row.user_id or "", "consumer_type": row.consumer_type,
                "generation": row.consumer_generation}
    return {"project_id": row.server_project or "", "user_id": row.server_user or "", "generation": row.epoch or 0,
            "consumer_type": INSTANCE if row.moving is None else MIGRATION}


# -- sums

def project_usages(tx: Connection, query: PlacementUsageQuery) -> tuple[UsageGroup, ...]:
    """Return the usage of a project (and user) by consumer type, in two statements."""
    held = _held(query).subquery()
    counts = {row.kind: int(row.consumers) for row in tx.execute(
        sa.select(held.c.kind, sa.func.count(held.c.consumer.distinct()).label("consumers")).group_by(held.c.kind))}
    used: dict[str, dict[str, int]] = {}
    for row in tx.execute(sa.select(held.c.kind, held.c.resource_class, sa.func.sum(held.c.used).label("used"))
                          .group_by(held.c.kind, held.c.resource_class).order_by(held.c.resource_class)):
        used.setdefault(row.kind, {})[row.resource_class] = int(row.used)
    return tuple(UsageGroup(consumer_type=name, consumers=count, used=used.get(name, {}))
                 for name, count in sorted(counts.items())
                 if query.consumer_type in (None, ALL, name))


def _held(query: PlacementUsageQuery) -> sa.CompoundSelect[*tuple[object, ...]]:
    """Select (kind, consumer, class, used) of servers, of their migrations, and of other consumers; with a single kind
    if the query asks for all together."""
    def owned(table: sa.Table) -> sa.ColumnElement[bool]:
        mine = table.c.project_id == query.project_id
        return mine if query.user_id is None else sa.and_(mine, table.c.user_id == query.user_id)

    def part(kind: sa.ColumnElement[str], owner: sa.Table, meet: sa.ColumnElement[bool]
             ) -> sa.Select[str, str, str, int]:
        shown = sa.literal(ALL) if query.consumer_type == ALL else kind
        return (sa.select(shown.label("kind"), allocations.c.consumer, allocations.c.resource_class, allocations.c.used)
                .join_from(allocations, owner, meet).where(owned(owner)))
    return sa.union_all(
        part(sa.literal(INSTANCE), ledger, ledger.c.server_uuid == allocations.c.consumer),
        part(sa.literal(MIGRATION), ledger, ledger.c.server_uuid == allocations.c.moving),
        part(sa.func.coalesce(consumers.c.consumer_type, UNKNOWN), consumers,
             consumers.c.uuid == allocations.c.consumer))
