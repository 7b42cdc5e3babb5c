"""A server's allocations on a host by provider, for its port bindings."""

from __future__ import annotations

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from nova.db.models.api import allocations, provider_traits, providers
from nova.model.network.port_requests import HeldResources

_roots = providers.alias("roots")


def held(tx: Connection, server_uuid: str, host: str, leaving: bool = False) -> tuple[HeldResources, ...]:
    """Return what a server holds in the host's trees. If a migration holds something there, too, ``leaving`` selects
    the source's allocations instead of the destination's."""
    mine = sa.or_(allocations.c.consumer == server_uuid, allocations.c.moving == server_uuid)
    rows = tx.execute(
        sa.select(providers.c.id, providers.c.uuid, allocations.c.resource_class, allocations.c.used,
                  allocations.c.moving)
        .join_from(allocations, providers, providers.c.id == allocations.c.provider_id)
        .join(_roots, _roots.c.id == sa.func.coalesce(providers.c.root_id, providers.c.id))
        .where(mine, _roots.c.host == host).order_by(providers.c.id)).all()
    meant = [row for row in rows if (row.moving is not None) == leaving] or list(rows)
    ids = {row.id for row in meant}
    traits: dict[int, list[str]] = {}
    for row in tx.execute(sa.select(provider_traits).where(provider_traits.c.provider_id.in_(ids))) if ids else ():
        traits.setdefault(row.provider_id, []).append(row.trait)
    found: dict[int, HeldResources] = {}
    for row in meant:
        one = found.setdefault(row.id, HeldResources(row.uuid, tuple(traits.get(row.id, ())), {}))
        found[row.id] = one._replace(amounts={**one.amounts, row.resource_class: row.used})
    return tuple(found.values())


__all__ = ["held"]
