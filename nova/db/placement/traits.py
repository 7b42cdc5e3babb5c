"""Traits and aggregates of providers."""

from __future__ import annotations

from collections.abc import Collection

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from nova import errors
from nova.db.models.api import aggregate_hosts, aggregates, provider_aggregates, provider_traits, providers
from nova.db.placement import locks, names
from nova.db.placement.conditions import DISABLED
from nova.db.placement.locks import Locked
from nova.db.sql.statements import insert_all
from nova.model.placement.providers import ProviderAggregates, ProviderTraits


def get(tx: Connection, uuid: str, disabled: Collection[str] = ()) -> ProviderTraits:
    """Return a provider's traits, reported and set through the API. Raises placement.ResourceProviderNotFound."""
    rows = tx.execute(sa.select(providers.c.generation, providers.c.host, providers.c.root_id, provider_traits.c.trait)
                      .select_from(providers.outerjoin(provider_traits,
                                                       provider_traits.c.provider_id == providers.c.id))
                      .where(providers.c.uuid == uuid)).all()
    if not rows:
        raise errors.placement.ResourceProviderNotFound(uuid=uuid)
    found = {row.trait for row in rows} - {None}
    if rows[0].host in disabled and rows[0].root_id is None:
        found.add(DISABLED)
    return ProviderTraits(uuid=uuid, generation=rows[0].generation, traits=tuple(sorted(found)))


def replace(tx: Connection, wanted: ProviderTraits) -> Locked | None:
    """Replace a provider's traits; None if nothing changes. Traits that its host reports return with the next report.
    Raises placement.ResourceProviderNotFound, placement.ConcurrentUpdate, placement.TraitUnknown."""
    one = locks.tree(tx, wanted.uuid, wanted.generation)
    unknown = names.unknown_traits(tx, wanted.traits)
    if unknown:
        raise errors.placement.TraitUnknown(traits=", ".join(unknown))
    there = set(tx.execute(sa.select(provider_traits.c.trait).where(provider_traits.c.provider_id == one.id)).scalars())
    kept = set(wanted.traits)
    if one.own_host and one.id == one.root and DISABLED not in there:
        kept.discard(DISABLED)  # derived from the host's service; the client read it with the others
    if kept == there:
        return None
    tx.execute(sa.delete(provider_traits).where(provider_traits.c.provider_id == one.id,
                                                provider_traits.c.trait.in_(sorted(there - kept))))
    insert_all(tx, provider_traits, [{"provider_id": one.id, "trait": trait, "reported": False}
                                     for trait in sorted(kept - there)])
    locks.count_up(tx, [one])
    return one


# -- aggregates

_MEMBERSHIP = (sa.select(aggregates.c.uuid)
               .join_from(aggregate_hosts, aggregates, aggregates.c.id == aggregate_hosts.c.aggregate_id))


def get_aggregates(tx: Connection, uuid: str) -> ProviderAggregates:
    """Return the UUIDs of a provider's aggregates: those set here, and for a host's node those of the host. Raises
    placement.ResourceProviderNotFound."""
    one = tx.execute(sa.select(providers.c.id, providers.c.generation, providers.c.host, providers.c.root_id)
                     .where(providers.c.uuid == uuid)).one_or_none()
    if one is None:
        raise errors.placement.ResourceProviderNotFound(uuid=uuid)
    given = set(tx.execute(sa.select(provider_aggregates.c.aggregate_uuid)
                           .where(provider_aggregates.c.provider_id == one.id)).scalars())
    of_host = set(tx.execute(_MEMBERSHIP.where(aggregate_hosts.c.host == one.host)).scalars()) if (
        one.host and one.root_id is None) else set()
    return ProviderAggregates(uuid=uuid, generation=one.generation, aggregates=tuple(sorted(given | of_host)))


def replace_aggregates(tx: Connection, wanted: ProviderAggregates) -> Locked:
    """Replace a provider's aggregates; those of a host remain under the Compute API's control. The generation increases
    if one was given. Raises placement.ResourceProviderNotFound, placement.ConcurrentUpdate."""
    one = locks.tree(tx, wanted.uuid, wanted.generation)
    given = set(wanted.aggregates)
    if one.own_host and one.id == one.root:
        given -= set(tx.execute(_MEMBERSHIP.where(aggregate_hosts.c.host == one.own_host)).scalars())
    tx.execute(sa.delete(provider_aggregates).where(provider_aggregates.c.provider_id == one.id))
    insert_all(tx, provider_aggregates, [{"provider_id": one.id, "aggregate_uuid": uuid} for uuid in sorted(given)])
    locks.count_up(tx, [one], {one.id: int(wanted.generation is not None)})
    return one
