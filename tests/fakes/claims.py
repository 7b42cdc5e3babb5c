"""Claims on hosts, read from the api database by ``rows(schema, query)``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import sqlalchemy as sa

from nova.db.models.api import allocations, providers

Rows = Callable[[str, Any], Sequence[Any]]


def amounts(rows: Rows) -> dict[tuple[str, str, str], int]:
    """Return the claimed amounts by (host, consumer, resource class)."""
    return {(row.host, row.consumer, row.resource_class): row.used for row in rows("api", sa.select(
        providers.c.host, allocations.c.consumer, allocations.c.resource_class, allocations.c.used)
        .join_from(allocations, providers, providers.c.id == allocations.c.provider_id))}


def moving(rows: Rows) -> dict[str, str]:
    """Return the consumers that are moves: consumer -> server."""
    return {row.consumer: row.moving for row in rows("api", sa.select(
        allocations.c.consumer, allocations.c.moving).where(allocations.c.moving.is_not(None)))}
