"""Places of hosts: zones, aggregates and their metadata, shared by hosts in the same aggregates."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import msgspec

from nova.model.host.aggregates import placed
from nova.model.host.hosts import AggregateStates, HostState


class AggregateSettings(NamedTuple):
    """A host's settings from its aggregates: its zone, all values of each metadata key, and the aggregates' UUIDs."""

    zone: str
    metadata: Mapping[str, tuple[str, ...]]
    uuids: tuple[str, ...]


class Places:
    """The settings of each host by the newest known aggregates."""

    def __init__(self, aggregates: AggregateStates | None = None) -> None:
        self.version = aggregates.version if aggregates is not None else -1
        self._default = AggregateSettings("", {}, ())
        self._of_host: dict[str, AggregateSettings] = {}
        if aggregates is not None:
            self._learn(aggregates)

    def _learn(self, aggregates: AggregateStates) -> None:
        self._default = AggregateSettings(*placed((), aggregates.default_zone), ())
        numbers: dict[str, list[int]] = {}
        for number, one in enumerate(aggregates.aggregates):
            for host in one.hosts:
                numbers.setdefault(host, []).append(number)
        same: dict[tuple[int, ...], AggregateSettings] = {}  # shared by hosts of the same aggregates
        for host, found in numbers.items():
            key = tuple(found)
            if key not in same:
                mine = [aggregates.aggregates[number] for number in key]
                same[key] = AggregateSettings(*placed([one.metadata for one in mine], aggregates.default_zone),
                                              tuple(one.uuid for one in mine))
            self._of_host[host] = same[key]

    def of(self, state: HostState) -> HostState:
        """Return the state with its current zone and metadata, or the state itself if it is at least as new."""
        if state.aggregates_version >= self.version:
            return state
        place = self._of_host.get(state.host, self._default)
        return msgspec.structs.replace(state, aggregates_version=self.version, zone=place.zone,
                                       aggregate_metadata=place.metadata, aggregate_uuids=place.uuids)
