"""A project's usage by resource class, for unified limits. Exact under the project's lock."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from nova.db.models.api import ledger

SERVERS = "servers"
_OPEN = sa.and_(ledger.c.project_id == sa.bindparam("project_id"), ledger.c.closed == sa.false())
#: Servers with equal requirements share one row: a project uses a few flavors for any number of servers.
_KNOWN = (sa.select(ledger.c.classes, sa.func.count().label("servers"))
          .where(_OPEN, ledger.c.classes.is_not(None)).group_by(ledger.c.classes))
_OLDER = sa.select(ledger.c.vcpus, ledger.c.memory_mb, ledger.c.facts).where(_OPEN, ledger.c.classes.is_(None))


def usage(tx: Connection, project_id: str) -> dict[str, int]:
    """Return the usage of ``servers`` and each ``class:NAME``. Rows older than the column count by their flavor."""
    total: Counter[str] = Counter()
    for row in tx.execute(_KNOWN, {"project_id": project_id}):
        total[SERVERS] += row.servers
        for name, amount in row.classes.items():
            total[f"class:{name}"] += amount * row.servers
    for row in tx.execute(_OLDER, {"project_id": project_id}):
        flavor = row.facts.flavor if row.facts else None
        disk = flavor.root_gb + flavor.ephemeral_gb + (flavor.swap_mb + 1023) // 1024 if flavor else 0
        total.update({SERVERS: 1, "class:VCPU": row.vcpus, "class:MEMORY_MB": row.memory_mb, "class:DISK_GB": disk})
    return dict(total)


def names(tx: Connection) -> set[str]:
    """Return ``class:NAME`` of each class that any live server of any project uses, in one statement."""
    found = tx.execute(sa.select(ledger.c.classes).where(ledger.c.closed == sa.false(), ledger.c.classes.is_not(None))
                       .distinct())
    return {f"class:{name}" for row in found for name in row.classes}


def count_as(tx: Connection, server_uuid: str, classes: Mapping[str, int]) -> None:
    """Set the resource classes that an open row counts; the caller holds the row's lock."""
    tx.execute(sa.update(ledger).where(ledger.c.server_uuid == server_uuid, ledger.c.closed == sa.false())
               .values(classes=classes))
