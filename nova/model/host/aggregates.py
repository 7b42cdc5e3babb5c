"""Aggregates: groups of hosts that operators create, with metadata for the scheduler. Zones are such metadata."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from nova.model.base import Time, Value

ZONE = "availability_zone"  # the metadata key that makes an aggregate an availability zone
#: Metadata key of the comma-separated projects that an aggregate is reserved for. Keys with this prefix have the same
#: meaning; they are for lists that exceed one value.
TENANT = "filter_tenant_id"


class Aggregate(Value):
    """A complete aggregate: hosts by name, sorted by name."""

    id: int
    uuid: str
    name: str
    created_at: Time
    updated_at: Time | None = None
    hosts: tuple[str, ...] = ()
    metadata: Mapping[str, str] = {}

    @property
    def zone(self) -> str | None:
        """Availability zone of the aggregate's hosts; None if the aggregate has no zone."""
        return self.metadata.get(ZONE)


class NewAggregate(Value):
    name: str
    availability_zone: str | None = None


class AggregateUpdate(Value):
    """Changes of an aggregate. ``name`` None: unchanged. The zone is only written if ``changes_zone``; None removes
    it."""

    id: int
    name: str | None = None
    changes_zone: bool = False
    availability_zone: str | None = None


class CachedImage(Value):
    """Result of caching one image on a host. ``state``: cached, existing, unsupported or error."""

    image_id: str
    state: str
    error: str = ""


def placed(metadata: Iterable[Mapping[str, str]], default_zone: str) -> tuple[str, dict[str, tuple[str, ...]]]:
    """Return a host's zone, and all values of each key, from the metadata of its aggregates (oldest first)."""
    values: dict[str, set[str]] = {}
    zone = None
    for items in metadata:
        zone = zone or items.get(ZONE)
        for key, value in items.items():
            values.setdefault(key, set()).add(value)
    return zone or default_zone, {key: tuple(sorted(found)) for key, found in sorted(values.items())}
