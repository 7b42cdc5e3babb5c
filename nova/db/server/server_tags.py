"""A server's tags."""

from __future__ import annotations

from collections.abc import Iterable

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from nova.db.models.cell import server_tags
from nova.db.sql.statements import insert_all


def of(tx: Connection, server_uuid: str) -> set[str]:
    """Return all tags of a server; empty if it has none or does not exist."""
    return set(tx.execute(sa.select(server_tags.c.tag).where(server_tags.c.server_uuid == server_uuid)).scalars())


def change(tx: Connection, server_uuid: str, new: Iterable[str], gone: Iterable[str]) -> None:
    """Add the tags ``new`` (the server must not have them) and remove the tags ``gone``."""
    out = list(gone)
    if out:
        tx.execute(sa.delete(server_tags).where(server_tags.c.server_uuid == server_uuid, server_tags.c.tag.in_(out)))
    insert_all(tx, server_tags, [{"server_uuid": server_uuid, "tag": tag} for tag in new])
