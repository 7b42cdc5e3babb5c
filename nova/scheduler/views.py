"""A host as filters and weighers see it: frozen, with what is free already worked out."""

from __future__ import annotations

import dataclasses
import logging
import weakref
from collections.abc import Mapping

from nova.model.hosts import HostState
from nova.model.scheduling import Resources

LOG = logging.getLogger(__name__)

NO_MULTIPLIERS: Mapping[str, float] = {}
MULTIPLIER_SUFFIX = "_weight_multiplier"


@dataclasses.dataclass(frozen=True, eq=False, slots=True, weakref_slot=True)
class HostFacts:
    """What a host *is*, apart from what is used of it. Hosts that are alike share one object (see :func:`facts_of`)."""

    hypervisor_type: str
    hypervisor_version: int
    supported: tuple[tuple[str, str, str], ...]  # (architecture, hypervisor type, vm mode)
    capabilities: Mapping[str, str]
    traits: frozenset[str]


@dataclasses.dataclass(frozen=True, slots=True)
class HostView:
    """One node of a host at one moment. Amounts free are after allocation ratio, reservation and decisions of ours
    that are not claimed yet; they can be negative. Memory in MB, disk in GB."""

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
    state: HostState

    def with_taken(self, need: Resources) -> HostView:
        """The same host after one more server of this size."""
        return dataclasses.replace(self, free_vcpus=self.free_vcpus - need.vcpus,
                                   free_memory_mb=self.free_memory_mb - need.memory_mb,
                                   free_disk_gb=self.free_disk_gb - need.disk_gb)


_known_facts: weakref.WeakValueDictionary[tuple[object, ...], HostFacts] = weakref.WeakValueDictionary()


def facts_of(state: HostState) -> HostFacts:
    """The host's facts, as one object for all hosts that are alike, so that verdicts on them can be kept."""
    capabilities = tuple(sorted(state.capabilities.items()))
    traits = frozenset(state.traits)
    key = (state.hypervisor_type, state.hypervisor_version, state.supported, capabilities, traits)
    found = _known_facts.get(key)
    if found is None:
        found = HostFacts(state.hypervisor_type, state.hypervisor_version, state.supported, state.capabilities, traits)
        _known_facts[key] = found
    return found


def multipliers_of(state: HostState) -> Mapping[str, float]:
    """Weight multipliers in the metadata of the host's aggregates; the lowest wins where several set one."""
    found: dict[str, float] = {}
    for key, values in state.aggregate_metadata.items():
        numbers = [number for number in map(_number, values) if number is not None]
        if key.endswith(MULTIPLIER_SUFFIX) and numbers:
            found[key] = min(numbers)
        elif key.endswith(MULTIPLIER_SUFFIX):
            LOG.warning("Host %s: aggregate metadata %s=%s is not a number; the option's value is used instead",
                        state.host, key, ",".join(values))
    return found or NO_MULTIPLIERS


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def view_of(state: HostState, up: bool, pending: tuple[int, int, int] = (0, 0, 0),
            like: HostView | None = None) -> HostView:
    """Make a view. ``pending`` is (vcpus, MB, GB) decided but not claimed; ``like`` an older view of the same host,
    whose parts are used again where the state's did not change."""
    same = like is not None and like.state is state
    return HostView(
        host=state.host, node=state.node, provider_id=state.provider_id, zone=state.zone, state=state,
        up=up, usable=up and state.enabled and not state.forced_down,
        free_vcpus=state.vcpus_capacity - state.vcpus_used - pending[0],
        free_memory_mb=state.memory_mb_capacity - state.memory_mb_used - pending[1],
        free_disk_gb=state.disk_gb_capacity - state.disk_gb_used - pending[2],
        facts=like.facts if same and like else facts_of(state),
        multipliers=like.multipliers if same and like else multipliers_of(state))
