"""A project's usage of nova-network's resources, by quota name."""

from __future__ import annotations

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from nova.db.models.cell import (
    fixed_addresses,
    floating_addresses,
    networks,
    security_group_rules,
    security_groups,
    servers,
)


def used(tx: Connection, project_id: str) -> dict[str, int]:
    """Return the usage, in one statement. Rules: those of the largest group, since the limit applies per group."""
    def count(table: sa.FromClause, *where: sa.ColumnElement[bool]) -> sa.ScalarSelect[int]:
        return sa.select(sa.func.count()).select_from(table).where(*where).scalar_subquery()
    held = sa.join(fixed_addresses, servers, servers.c.uuid == fixed_addresses.c.server_uuid)
    rules = (sa.select(sa.func.count().label("rules")).select_from(security_group_rules)
             .join(security_groups, security_groups.c.id == security_group_rules.c.group_id)
             .where(security_groups.c.project_id == project_id).group_by(security_group_rules.c.group_id).subquery())
    row = tx.execute(sa.select(
        count(held, servers.c.project_id == project_id).label("fixed_ips"),
        count(floating_addresses, floating_addresses.c.project_id == project_id,
              floating_addresses.c.auto_assigned == sa.false()).label("floating_ips"),
        count(networks, networks.c.project_id == project_id).label("networks"),
        count(security_groups, security_groups.c.project_id == project_id).label("security_groups"),
        sa.select(sa.func.coalesce(sa.func.max(rules.c.rules), 0)).scalar_subquery().label("security_group_rules"),
    )).one()
    return {name: int(value) for name, value in row._mapping.items()}
