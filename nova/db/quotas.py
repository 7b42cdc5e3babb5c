"""Limits that differ from the configured defaults, a project's own and single users'."""

from __future__ import annotations

from collections.abc import Mapping

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from nova.db.models.api import quotas
from nova.db.statements import insert_all


def limits(tx: Connection, project_id: str, user_id: str | None) -> tuple[dict[str, int], dict[str, int]]:
    """(the project's own limits, the user's own), in one statement."""
    owners = ["", user_id] if user_id else [""]
    rows = tx.execute(sa.select(quotas.c.user_id, quotas.c.resource, quotas.c.hard_limit)
                      .where(quotas.c.project_id == project_id, quotas.c.user_id.in_(owners)))
    project: dict[str, int] = {}
    user: dict[str, int] = {}
    for row in rows:
        (user if row.user_id else project)[row.resource] = row.hard_limit
    return project, user


def write(tx: Connection, project_id: str, user_id: str | None, values: Mapping[str, int]) -> None:
    owner = user_id or ""
    tx.execute(sa.delete(quotas).where(quotas.c.project_id == project_id, quotas.c.user_id == owner,
                                       quotas.c.resource.in_(list(values))))
    insert_all(tx, quotas, [{"project_id": project_id, "user_id": owner, "resource": name, "hard_limit": limit}
                            for name, limit in values.items()])


def delete(tx: Connection, project_id: str, user_id: str | None) -> None:
    """A user's own limits, or (without a user) all of the project's."""
    query = sa.delete(quotas).where(quotas.c.project_id == project_id)
    tx.execute(query.where(quotas.c.user_id == user_id) if user_id else query)
