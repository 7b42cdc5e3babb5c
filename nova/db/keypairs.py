"""Keypairs of users."""

from __future__ import annotations

import sqlalchemy as sa
from sqlalchemy import exc
from sqlalchemy.engine import Connection

from nova import errors, failures
from nova.db.models.api import keypairs
from nova.db.sql.types import utc_now
from nova.model.server.keypairs import Keypair, KeypairQuery, NewKeypair

_FIELDS = [keypairs.c[name] for name in Keypair.__struct_fields__]


def select(tx: Connection, query: KeypairQuery, limit: int) -> tuple[Keypair, ...]:
    """Return a user's keypairs, ordered by name. Raises api.PageMarkerNotFound if the marker is unknown."""
    chosen = sa.select(*_FIELDS).where(keypairs.c.user_id == query.user_id).order_by(keypairs.c.name).limit(limit)
    if query.marker:
        known = tx.execute(sa.select(keypairs.c.id).where(keypairs.c.user_id == query.user_id,
                                                          keypairs.c.name == query.marker)).first()
        if known is None:
            raise errors.api.PageMarkerNotFound(marker=query.marker)
        chosen = chosen.where(keypairs.c.name > query.marker)
    return tuple(Keypair(**row._mapping) for row in tx.execute(chosen))


def get(tx: Connection, user_id: str, name: str) -> Keypair:
    """Return a user's keypair by name. Raises server.KeypairNotFound."""
    row = tx.execute(sa.select(*_FIELDS).where(keypairs.c.user_id == user_id,
                                               keypairs.c.name == name)).one_or_none()
    if row is None:
        raise errors.server.KeypairNotFound(name=name, user_id=user_id)
    return Keypair(**row._mapping)


def count(tx: Connection, user_id: str, name: str) -> tuple[int, bool]:
    """Return the number of the user's keypairs, and whether one has this name."""
    same = sa.func.coalesce(sa.func.sum(sa.case((keypairs.c.name == name, 1), else_=0)), 0)
    row = tx.execute(sa.select(sa.func.count(), same).select_from(keypairs).where(keypairs.c.user_id == user_id)).one()
    return int(row[0]), bool(row[1])


def insert(tx: Connection, keypair: NewKeypair) -> None:
    """Insert a keypair, created now. Raises server.KeypairTaken if the user already has one of that name."""
    values = {name: getattr(keypair, name) for name in NewKeypair.__struct_fields__ if name in keypairs.c}
    with failures.replaced(exc.IntegrityError, lambda _: errors.server.KeypairTaken(name=keypair.name)):
        tx.execute(sa.insert(keypairs).values(**values, created_at=utc_now()))


def delete(tx: Connection, user_id: str, name: str) -> None:
    """Delete a user's keypair; servers keep their copy of the public key. Raises server.KeypairNotFound."""
    if not tx.execute(sa.delete(keypairs).where(keypairs.c.user_id == user_id, keypairs.c.name == name)).rowcount:
        raise errors.server.KeypairNotFound(name=name, user_id=user_id)
