"""Aggregates as the API shows them."""

from __future__ import annotations

from collections.abc import Sequence

from nova.api.request import Request
from nova.api.view import Free, Out, View, micros_of
from nova.model.host.aggregates import Aggregate

#: The response of a create; deleted aggregates are never shown.
CREATED = View(
    Out("id", "id"),
    Out("uuid", "uuid", since="2.41"),
    Out("name", "name"),
    Out("availability_zone", "zone"),
    Out("created_at", micros_of("created_at")),
    Out("updated_at", micros_of("updated_at")),
    Out("deleted", lambda aggregate, req: False, type="boolean"),
    Out("deleted_at", lambda aggregate, req: None, type="null"),
    of=Aggregate,
)

FULL = View(
    *CREATED.fields,
    Out("hosts", lambda aggregate, req: list(aggregate.hosts), type=["string"]),
    Out("metadata", lambda aggregate, req: dict(aggregate.metadata), type=Free()),
    of=Aggregate,
)


def listed(aggregates: Sequence[Aggregate], req: Request) -> dict[str, object]:
    """Return ``{"aggregates": [...]}``."""
    return {"aggregates": FULL.all(aggregates, req)}


def one(aggregate: Aggregate, req: Request) -> dict[str, object]:
    """Return ``{"aggregate": {...}}``."""
    return {"aggregate": FULL(aggregate, req)}
