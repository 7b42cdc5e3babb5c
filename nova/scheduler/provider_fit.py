"""Fit of a server's requirements in a host's provider tree, NUMA cells and devices. The rules are the claim's
(:mod:`nova.model.placement.candidates`, :mod:`nova.model.numa.fit`), applied to the scheduler's data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import msgspec

from nova.model.numa.fit import pack
from nova.model.numa.topology import TopologyClaim
from nova.model.placement import candidates
from nova.model.placement.providers import Amount, ProviderState
from nova.model.scheduling.decisions import HostRequirements
from nova.scheduler.views import HostView

PLAIN = {"VCPU": "vcpus", "MEMORY_MB": "memory_mb", "DISK_GB": "disk_gb"}


class Fit(NamedTuple):
    """The claim that a pending server will make on a host: provider id -> class -> amount, and its PCI and NUMA
    claim."""

    amounts: Mapping[int, Mapping[str, int]]
    packing: TopologyClaim | None = None


def take(host: HostView, requirements: HostRequirements | None) -> Fit | None:
    """Return the claim; None for a server without requirements, or if the host does not meet them."""
    if requirements is None:
        return None
    solution = candidates.first(tree_of(host), requirements.request)
    if solution is None:
        return None
    if not requirements.topology.anything:
        return Fit(solution.amounts)
    packing = pack(host.state.topology, topology_claims_of(host), requirements.topology)
    return None if isinstance(packing, str) else Fit(solution.amounts, packing)


def topology_claims_of(host: HostView) -> tuple[TopologyClaim, ...]:
    """Return the PCI and NUMA claims of the host's guests, including pending ones."""
    if not host.fits:
        return host.state.packings
    return (*host.state.packings, *(one.packing for one in host.fits if one.packing is not None))


def tree_of(host: HostView) -> tuple[ProviderState, ...]:
    """Return the node's provider and its children, with pending servers' claims as used. Cached in the view."""
    found: tuple[ProviderState, ...] | None = host.kept.get("tree")
    if found is None:
        found = host.kept["tree"] = _tree(host)
    return found


def _tree(host: HostView) -> tuple[ProviderState, ...]:
    state = host.state
    plain = {name: Amount(capacity=getattr(state, f"{field}_capacity"),
                          used=getattr(state, f"{field}_capacity") - getattr(host, f"free_{field}"),
                          max_unit=getattr(state, f"{field}_total") or getattr(state, f"{field}_capacity"))
             for name, field in PLAIN.items()}
    root = ProviderState(id=state.provider_id, uuid=state.provider_uuid, name=state.node,
                         amounts={**plain, **state.amounts}, traits=tuple(host.facts.traits),
                         aggregates=(*state.own_aggregates, *state.aggregate_uuids))
    return tuple(_with_fits(one, host.fits, one is root) for one in (root, *state.children))


def _with_fits(one: ProviderState, fits: Sequence[Fit], is_root: bool) -> ProviderState:
    """Return the provider with the pending amounts. The view's free amounts already include the root's plain ones."""
    more: dict[str, int] = {}
    for fit in fits:
        for name, amount in fit.amounts.get(one.id, {}).items():
            if not (is_root and name in PLAIN):
                more[name] = more.get(name, 0) + amount
    if not more:
        return one
    return msgspec.structs.replace(one, amounts={
        name: msgspec.structs.replace(have, used=have.used + more.get(name, 0)) for name, have in one.amounts.items()})


__all__ = ["PLAIN", "Fit", "topology_claims_of", "take", "tree_of"]
