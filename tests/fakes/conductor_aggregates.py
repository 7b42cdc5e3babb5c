"""The fake conductor's part for aggregates."""

from __future__ import annotations

import datetime
import uuid
from collections.abc import Mapping
from typing import Any

import msgspec

from nova import errors
from nova.model.aggregates import ZONE, Aggregate, AggregateUpdate, NewAggregate

replace = msgspec.structs.replace
MADE = datetime.datetime(2026, 1, 2, 3, 4, 5, 678901)
CHANGED = datetime.datetime(2026, 1, 3, 3, 4, 5)


class Aggregates:
    """``cached`` keeps (aggregate, images) that were asked for; ``refusal`` is raised by every change."""

    def __init__(self) -> None:
        super().__init__()
        self.aggregates: dict[int, Aggregate] = {}
        self.updates_of_aggregates: list[AggregateUpdate] = []
        self.cached: list[tuple[int, tuple[str, ...]]] = []
        self.refusal: errors.NovaError | None = None

    def add_aggregate(self, name: str, hosts: tuple[str, ...] = (), **metadata: str) -> Aggregate:
        number = len(self.aggregates) + 1
        self.aggregates[number] = Aggregate(id=number, uuid=str(uuid.UUID(int=number)), name=name, created_at=MADE,
                                            hosts=hosts, metadata=metadata)
        return self.aggregates[number]

    def _changed(self, key: int, **fields: Any) -> Aggregate:
        if self.refusal is not None:
            raise self.refusal
        self.aggregates[key] = replace(self.get_aggregate(key), **fields)
        return self.aggregates[key]

    def list_aggregates(self) -> tuple[Aggregate, ...]:
        return tuple(self.aggregates.values())

    def get_aggregate(self, aggregate_id: int) -> Aggregate:
        if aggregate_id not in self.aggregates:
            raise errors.NotFound(f"Aggregate {aggregate_id} could not be found.")
        return self.aggregates[aggregate_id]

    def create_aggregate(self, new: NewAggregate) -> Aggregate:
        if any(one.name == new.name for one in self.aggregates.values()):
            raise errors.Conflict(f"Aggregate {new.name} already exists.")
        return self.add_aggregate(new.name, **({ZONE: new.availability_zone} if new.availability_zone else {}))

    def update_aggregate(self, update: AggregateUpdate) -> Aggregate:
        self.updates_of_aggregates.append(update)
        if update.changes_zone:
            self.set_aggregate_metadata(update.id, {ZONE: update.availability_zone})
        return self._changed(update.id, updated_at=CHANGED, **({"name": update.name} if update.name else {}))

    def set_aggregate_metadata(self, aggregate_id: int, items: Mapping[str, str | None]) -> Aggregate:
        merged = {**self.get_aggregate(aggregate_id).metadata, **items}
        return self._changed(aggregate_id, updated_at=CHANGED,
                             metadata={key: value for key, value in merged.items() if value is not None})

    def delete_aggregate(self, aggregate_id: int) -> None:
        if self.get_aggregate(aggregate_id).hosts:
            raise errors.Invalid(f"Cannot delete aggregate {aggregate_id}: it still has hosts.")
        del self.aggregates[aggregate_id]

    def add_aggregate_host(self, aggregate_id: int, host: str) -> Aggregate:
        return self._changed(aggregate_id, hosts=(*self.get_aggregate(aggregate_id).hosts, host))

    def remove_aggregate_host(self, aggregate_id: int, host: str) -> Aggregate:
        hosts = self.get_aggregate(aggregate_id).hosts
        return self._changed(aggregate_id, hosts=tuple(one for one in hosts if one != host))

    def cache_images(self, aggregate_id: int, image_ids: tuple[str, ...]) -> None:
        self.get_aggregate(aggregate_id)
        self.cached.append((aggregate_id, image_ids))
