"""Locks of provider trees: the root's row is locked before any data of the tree is read for a decision.

A provider's generation counts writes as in Placement (see doc/placement.rst). In a host's tree, the root's generation
counts all changes: schedulers use it to tell a host's newer state from an older one.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from nova import errors
from nova.db.models.api import providers
from nova.db.sql.types import utc_now

TRIES = 5  # attempts while concurrent requests move the provider to another root


class Locked(NamedTuple):
    """A provider in a locked tree. ``host``: the root's; empty if it is not a host's tree."""

    id: int
    uuid: str
    name: str
    generation: int
    parent_id: int | None
    root: int
    own_host: str
    host: str

    def check(self, generation: int | None) -> None:
        """Check the generation, unless it is None. Raises placement.ConcurrentUpdate."""
        if generation is not None and generation != self.generation:
            raise errors.placement.ConcurrentUpdate(uuid=self.uuid, generation=self.generation, given=generation)


_root = providers.alias("root")
_ROOT_ID = sa.func.coalesce(providers.c.root_id, providers.c.id)
_ROWS = (sa.select(providers.c.id, providers.c.uuid, providers.c.name, providers.c.generation, providers.c.parent_id,
                   _ROOT_ID.label("root"), providers.c.host.label("own_host"), _root.c.host)
         .join_from(providers, _root, _root.c.id == _ROOT_ID))
_LOCK = (sa.select(providers.c.id).where(providers.c.id.in_(sa.bindparam("keys", expanding=True)))
         .order_by(providers.c.id).with_for_update())


def known(tx: Connection, uuids: Collection[str]) -> dict[str, Locked]:
    """Return the existing providers of ``uuids``, without a lock."""
    if not uuids:
        return {}
    return {row.uuid: Locked(*row) for row in tx.execute(_ROWS.where(providers.c.uuid.in_(list(uuids))))}


def trees(tx: Connection, uuids: Collection[str]) -> dict[str, Locked]:
    """Lock the trees of these providers, in the order of their roots' ids; return the existing providers."""
    locked: set[int] = set()
    for _ in range(TRIES):
        found = known(tx, uuids)
        roots = {one.root for one in found.values()}
        if roots <= locked:
            return found
        tx.execute(_LOCK, {"keys": sorted(roots - locked)}).all()
        locked |= roots
    raise errors.placement.ResourceProviderBusy()


def tree(tx: Connection, uuid: str, generation: int | None = None) -> Locked:
    """Lock the provider's tree. Raises placement.ResourceProviderNotFound, or placement.ConcurrentUpdate if
    ``generation`` is outdated."""
    found = trees(tx, [uuid]).get(uuid)
    if found is None:
        raise errors.placement.ResourceProviderNotFound(uuid=uuid)
    found.check(generation)
    return found


def count_up(tx: Connection, changed: Iterable[Locked], counts: Mapping[int, int] | None = None) -> None:
    """Increment the generations of changed providers, under their trees' locks. ``counts``: the increments by id; 1
    each by default. A host's root increases by at least 1 for any change in its tree."""
    changed = list(changed)
    by = {one.id: 1 if counts is None else counts[one.id] for one in changed}
    for one in changed:
        if one.host:
            by[one.root] = max(1, by.get(one.root, 0))
    for step in sorted(set(by.values()) - {0}):
        keys = sorted(key for key, value in by.items() if value == step)
        tx.execute(sa.update(providers).where(providers.c.id.in_(keys))
                   .values(generation=providers.c.generation + step, updated_at=utc_now()))


def hosts_of(changed: Iterable[Locked]) -> list[str]:
    """Return the hosts of these providers' trees, which schedulers must reload."""
    return sorted({one.host for one in changed if one.host})
