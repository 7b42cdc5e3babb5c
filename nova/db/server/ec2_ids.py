"""The numbers of EC2 ids: each resource has its own, which is never reused for another."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from nova.db.models.api import ec2_ids
from nova.db.sql.statements import delete_keys, insert_ignoring
from nova.db.sql.types import utc_now


def numbers(tx: Connection, kind: str, ids: Sequence[str]) -> dict[str, int]:
    """Return id -> number, for the ids that have one."""
    found = tx.execute(sa.select(ec2_ids.c.external_id, ec2_ids.c.id).where(
        ec2_ids.c.kind == kind, ec2_ids.c.external_id.in_(ids)))
    return {row.external_id: row.id for row in found}


def give(tx: Connection, kind: str, ids: Sequence[str]) -> None:
    """Assign a number to each id that has none. Concurrent calls find the same number."""
    insert_ignoring(tx, ec2_ids, [{"kind": kind, "external_id": one, "created_at": utc_now()} for one in ids])


def forget(tx: Connection, kind: str, ids: Sequence[str]) -> None:
    """Delete the numbers of resources that are deleted permanently. The database's counter never assigns them again."""
    keys = tx.execute(sa.select(ec2_ids.c.id).where(ec2_ids.c.kind == kind, ec2_ids.c.external_id.in_(ids))).scalars()
    delete_keys(tx, ec2_ids, list(keys))


def meant(tx: Connection, kind: str, wanted: Sequence[int]) -> Mapping[int, str]:
    """Return number -> id, for the numbers assigned to resources of this kind."""
    found = tx.execute(sa.select(ec2_ids.c.id, ec2_ids.c.external_id).where(
        ec2_ids.c.kind == kind, ec2_ids.c.id.in_(wanted)))
    return {row.id: row.external_id for row in found}
