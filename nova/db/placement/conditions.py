"""Provider filters as SQL conditions.

``disabled`` are hosts whose compute service is disabled or forced down. Their nodes have the trait
COMPUTE_STATUS_DISABLED, which is not stored, so that it cannot be outdated.
"""

from __future__ import annotations

from collections.abc import Collection

import sqlalchemy as sa

from nova.db.models.api import aggregate_hosts, aggregates, provider_aggregates, provider_traits, providers

DISABLED = "COMPUTE_STATUS_DISABLED"


def has_trait(of: sa.FromClause, traits: Collection[str], disabled: Collection[str]) -> sa.ColumnElement[bool]:
    """Return the condition that ``of`` (the table of providers, or an alias of it) has one of the traits."""
    given = of.c.id.in_(sa.select(provider_traits.c.provider_id).where(provider_traits.c.trait.in_(sorted(traits))))
    if DISABLED not in traits or not disabled:
        return given
    return sa.or_(given, sa.and_(of.c.root_id.is_(None), of.c.host.in_(sorted(disabled))))


def is_member(of: sa.FromClause, uuids: Collection[str]) -> sa.ColumnElement[bool]:
    """Return the condition that ``of`` is in one of the aggregates: as a member, or as the node of a host that is
    one."""
    given = sa.select(provider_aggregates.c.provider_id).where(
        provider_aggregates.c.aggregate_uuid.in_(sorted(uuids)))
    hosts = (sa.select(aggregate_hosts.c.host)
             .join_from(aggregate_hosts, aggregates, aggregates.c.id == aggregate_hosts.c.aggregate_id)
             .where(aggregates.c.uuid.in_(sorted(uuids))))
    return sa.or_(of.c.id.in_(given), sa.and_(of.c.root_id.is_(None), of.c.host.in_(hosts)))


def in_tree_of(uuid: str) -> sa.ColumnElement[bool]:
    """Return the condition that a provider is in the same tree as this one; never true if this one does not exist."""
    other = providers.alias("other")
    root = (sa.select(sa.func.coalesce(other.c.root_id, other.c.id)).where(other.c.uuid == uuid).scalar_subquery())
    return sa.func.coalesce(providers.c.root_id, providers.c.id) == root
