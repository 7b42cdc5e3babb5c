"""Views of hosts for filters and weighers: frozen, with the free amounts already calculated."""

from __future__ import annotations

import dataclasses
import logging
import math
import weakref
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from nova.model.host.hosts import AggregateMembers, HostState
from nova.model.scheduling.decisions import Resources

LOG = logging.getLogger(__name__)

NO_MULTIPLIERS: Mapping[str, float] = {}
MULTIPLIER_SUFFIX = "_weight_multiplier"
DISABLED = "COMPUTE_STATUS_DISABLED"  # trait of a host that accepts no new servers


@dataclasses.dataclass(frozen=True, eq=False, slots=True, weakref_slot=True)
class HostFacts:
    """Properties of a host, apart from its usage. Equal hosts share one object (see :func:`facts_of`)."""

    hypervisor_type: str
    hypervisor_version: int
    supported: tuple[tuple[str, str, str], ...]  # (architecture, hypervisor type, vm mode)
    capabilities: Mapping[str, str]
    traits: frozenset[str]  # reported by the host, or set by Placement's API


@dataclasses.dataclass(frozen=True, eq=False, slots=True, weakref_slot=True)
class HostAggregates:
    """Settings of a host from its aggregates. Hosts with the same metadata share one object (see
    :func:`aggregates_of`).

    ``values``: all values of each key, with comma-separated lists split. ``multipliers``: weight multipliers.
    """

    values: Mapping[str, frozenset[str]]
    multipliers: Mapping[str, float]


@dataclasses.dataclass(frozen=True, slots=True)
class HostView:
    """A node of a host at one moment. Free amounts include the allocation ratio, reservations and decisions that are
    not claimed yet; they can be negative. Memory in MB, disk in GB."""

    host: str
    node: str
    provider_id: int
    up: bool
    usable: bool  # up, enabled, and not forced down
    zone: str
    free_vcpus: int
    free_memory_mb: int
    free_disk_gb: int
    multipliers: Mapping[str, float]  # weight multipliers that the host's aggregates set
    facts: HostFacts
    aggregates: HostAggregates
    state: HostState
    pending: int = 0  # servers selected for it that its state does not count yet
    busy: int = 0  # servers with heavy I/O: being built, moved or copied
    fits: tuple[Any, ...] = ()  # claims of pending servers with requirements (``provider_fit.Fit``)
    known_aggregates: Mapping[str, AggregateMembers] = dataclasses.field(default_factory=dict, repr=False)  # by uuid
    kept: dict[str, Any] = dataclasses.field(default_factory=dict, repr=False, compare=False)  # cached values

    def with_taken(self, need: Resources, fit: object = None) -> HostView:
        """Return the host after one more server of this size; ``fit``: its claim by requirements."""
        return dataclasses.replace(self, free_vcpus=self.free_vcpus - need.vcpus,
                                   free_memory_mb=self.free_memory_mb - need.memory_mb,
                                   free_disk_gb=self.free_disk_gb - need.disk_gb, pending=self.pending + 1, kept={},
                                   fits=self.fits if fit is None else (*self.fits, fit))


_known_facts: weakref.WeakValueDictionary[tuple[object, ...], HostFacts] = weakref.WeakValueDictionary()


def facts_of(state: HostState) -> HostFacts:
    """Return the host's facts, as one object for all equal hosts, so that verdicts on them can be cached."""
    capabilities = tuple(sorted(state.capabilities.items()))
    traits = frozenset((*state.traits, *state.own_traits))
    key = (state.hypervisor_type, state.hypervisor_version, state.supported, capabilities, traits)
    found = _known_facts.get(key)
    if found is None:
        found = HostFacts(state.hypervisor_type, state.hypervisor_version, state.supported, state.capabilities, traits)
        _known_facts[key] = found
    return found


def multipliers_of(state: HostState) -> Mapping[str, float]:
    """Return the weight multipliers in the metadata of the host's aggregates; the lowest wins if several set one."""
    found: dict[str, float] = {}
    for key, values in state.aggregate_metadata.items():
        numbers = [number for number in map(_number, values) if number is not None]
        if key.endswith(MULTIPLIER_SUFFIX) and numbers:
            found[key] = min(numbers)
        elif key.endswith(MULTIPLIER_SUFFIX):
            LOG.warning("Host %s: aggregate metadata %s=%s is not a number; using the option's value",
                        state.host, key, ",".join(values))
    return found or NO_MULTIPLIERS


_known_aggregates: weakref.WeakValueDictionary[tuple[object, ...], HostAggregates] = weakref.WeakValueDictionary()


def aggregates_of(state: HostState) -> HostAggregates:
    """Return the settings of the host's aggregates, as one object for all hosts with the same metadata, so that
    verdicts on them can be cached."""
    key = tuple(state.aggregate_metadata.items())
    found = _known_aggregates.get(key)
    if found is None:
        values = {name: frozenset(word for value in given for part in value.split(",") if (word := part.strip()))
                  for name, given in state.aggregate_metadata.items()}
        found = HostAggregates(values, multipliers_of(state))
        _known_aggregates[key] = found
    return found


def _number(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) else None


class Load(NamedTuple):
    """Load of a host beyond its state: the amounts of ``servers`` that are selected but not claimed; ``fits``: the
    claims of servers with requirements among them; ``busy`` (see :class:`HostView`)."""

    vcpus: int = 0
    memory_mb: int = 0
    disk_gb: int = 0
    servers: int = 0
    fits: tuple[Any, ...] = ()
    busy: int = 0


NO_LOAD = Load()


#: No aggregates by uuid.
NO_AGGREGATES: Mapping[str, AggregateMembers] = MappingProxyType({})


def view_of(state: HostState, up: bool, load: Load = NO_LOAD, like: HostView | None = None,
            known: Mapping[str, AggregateMembers] = NO_AGGREGATES) -> HostView:
    """Return a view. ``like``: an older view of the same host, whose parts are reused if the state's did not change.
    ``known``: all aggregates by UUID."""
    facts = like.facts if like is not None and like.state is state else facts_of(state)
    same = like is not None and like.state.aggregate_metadata is state.aggregate_metadata
    aggregates = like.aggregates if like is not None and same else aggregates_of(state)
    return HostView(
        host=state.host, node=state.node, provider_id=state.provider_id, zone=state.zone, state=state,
        up=up, usable=up and state.enabled and not state.forced_down and DISABLED not in facts.traits,
        free_vcpus=state.vcpus_capacity - state.vcpus_used - load.vcpus,
        free_memory_mb=state.memory_mb_capacity - state.memory_mb_used - load.memory_mb,
        free_disk_gb=state.disk_gb_capacity - state.disk_gb_used - load.disk_gb,
        facts=facts, aggregates=aggregates, multipliers=aggregates.multipliers, pending=load.servers,
        fits=load.fits, busy=load.busy, known_aggregates=known)
