"""Groups of hosts that operators make, and the metadata that the scheduler reads. A zone is metadata too."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from nova.model.base import Time, Value

ZONE = "availability_zone"  # the key of an aggregate's metadata that makes it a zone
#: The key that names projects it is for, separated by commas. A key that begins with it does as well, where one value
#: cannot hold them all.
TENANT = "filter_tenant_id"


class Aggregate(Value):
    """An aggregate, whole: hosts by name, in the order of their names."""

    id: int
    uuid: str
    name: str
    created_at: Time
    updated_at: Time | None = None
    hosts: tuple[str, ...] = ()
    metadata: Mapping[str, str] = {}

    @property
    def zone(self) -> str | None:
        """The availability zone it makes of its hosts; None when it makes none."""
        return self.metadata.get(ZONE)


class NewAggregate(Value):
    name: str
    availability_zone: str | None = None


class AggregateUpdate(Value):
    """``name`` None stays. The zone is written only where ``changes_zone``; None then takes it away."""

    id: int
    name: str | None = None
    changes_zone: bool = False
    availability_zone: str | None = None


class CachedImage(Value):
    """What became of one image that a host was to keep ready. ``state``: cached, existing, unsupported or error."""

    image_id: str
    state: str
    error: str = ""


def placed(metadata: Iterable[Mapping[str, str]], default_zone: str) -> tuple[str, dict[str, tuple[str, ...]]]:
    """What a host's aggregates (the oldest first) make of it: its zone, and all values of each key."""
    values: dict[str, set[str]] = {}
    zone = None
    for items in metadata:
        zone = zone or items.get(ZONE)
        for key, value in items.items():
            values.setdefault(key, set()).add(value)
    return zone or default_zone, {key: tuple(sorted(found)) for key, found in sorted(values.items())}
