"""Quota limits that differ from the configured defaults (per class, project and user), and usage counts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from nova.db.models.api import keypairs, quota_classes, quotas, server_groups
from nova.db.sql.statements import insert_all
from nova.model.quota.quotas import DEFAULT_CLASS


class Limits(NamedTuple):
    """The limits set at each level; a resource in none of them has its configured default."""

    defaults: dict[str, int]  # of the class ``default``
    project: dict[str, int]
    user: dict[str, int]


_LEVELS = sa.union_all(
    sa.select(sa.literal(0).label("level"), quota_classes.c.resource, quota_classes.c.hard_limit)
    .where(quota_classes.c.class_name == DEFAULT_CLASS),
    sa.select(sa.case((quotas.c.user_id == "", sa.literal(1)), else_=sa.literal(2)), quotas.c.resource,
              quotas.c.hard_limit)
    .where(quotas.c.project_id == sa.bindparam("project_id"),
           quotas.c.user_id.in_(sa.bindparam("owners", expanding=True))))


def limits(tx: Connection, project_id: str, user_id: str | None) -> Limits:
    """Return all three levels, in one statement."""
    found = Limits({}, {}, {})
    for row in tx.execute(_LEVELS, {"project_id": project_id, "owners": ["", user_id] if user_id else [""]}):
        found[row.level][row.resource] = row.hard_limit
    return found


def class_limits(tx: Connection, name: str) -> dict[str, int]:
    """Return the limits of a quota class."""
    rows = tx.execute(sa.select(quota_classes.c.resource, quota_classes.c.hard_limit)
                      .where(quota_classes.c.class_name == name))
    return {row.resource: row.hard_limit for row in rows}


def of_projects(tx: Connection) -> dict[str, dict[str, int]]:
    """Return the limits of every project that has its own."""
    found: dict[str, dict[str, int]] = {}
    for row in tx.execute(sa.select(quotas).where(quotas.c.user_id == "").order_by(quotas.c.project_id)):
        found.setdefault(row.project_id, {})[row.resource] = row.hard_limit
    return found


def count_users(tx: Connection) -> int:
    """Return the number of users with their own limits in a project."""
    owners = sa.select(quotas.c.project_id, quotas.c.user_id).where(quotas.c.user_id != "").distinct().subquery()
    return int(tx.execute(sa.select(sa.func.count()).select_from(owners)).scalar_one())


def write_class(tx: Connection, name: str, values: Mapping[str, int]) -> None:
    """Set some limits of a class; -1 is unlimited. Others stay unchanged."""
    tx.execute(sa.delete(quota_classes).where(quota_classes.c.class_name == name,
                                              quota_classes.c.resource.in_(list(values))))
    insert_all(tx, quota_classes, [{"class_name": name, "resource": resource, "hard_limit": limit}
                                   for resource, limit in values.items()])


def write(tx: Connection, project_id: str, user_id: str | None, values: Mapping[str, int]) -> None:
    """Set some limits of a project (``user_id`` None), or of a user in it; -1 is unlimited. Others stay unchanged."""
    owner = user_id or ""
    tx.execute(sa.delete(quotas).where(quotas.c.project_id == project_id, quotas.c.user_id == owner,
                                       quotas.c.resource.in_(list(values))))
    insert_all(tx, quotas, [{"project_id": project_id, "user_id": owner, "resource": name, "hard_limit": limit}
                            for name, limit in values.items()])


def delete(tx: Connection, project_id: str, user_id: str | None) -> None:
    """Delete a user's own limits, or (without a user) all of the project's."""
    query = sa.delete(quotas).where(quotas.c.project_id == project_id)
    tx.execute(query.where(quotas.c.user_id == user_id) if user_id else query)


def used(tx: Connection, project_id: str, user_id: str | None) -> dict[str, int]:
    """Return the number of server groups and key pairs of a project, or of one user in it, in one statement.

    Key pairs belong to a user, independent of the project: they count only if a user is given.
    """
    mine = server_groups.c.project_id == project_id
    if user_id:
        mine = sa.and_(mine, server_groups.c.user_id == user_id)
    groups = sa.select(sa.func.count()).select_from(server_groups).where(mine).scalar_subquery()
    pairs = (sa.select(sa.func.count()).select_from(keypairs).where(keypairs.c.user_id == user_id).scalar_subquery()
             if user_id else sa.literal(0))
    row = tx.execute(sa.select(groups.label("server_groups"), pairs.label("key_pairs"))).one()
    return {"server_groups": int(row.server_groups), "key_pairs": int(row.key_pairs)}
