"""The closest miss of a request: the host that lacks least of it, and the missing amounts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from nova.model.numa import fit_shortfall
from nova.model.scheduling.decisions import PlacementRequest
from nova.scheduler.filters import Filter
from nova.scheduler.filters.always import AMOUNTS, CapacityFilter, available
from nova.scheduler.filters.numa_topology import NUMATopologyFilter
from nova.scheduler.filters.pci_passthrough import PciPassthroughFilter
from nova.scheduler.filters.requirements import RequirementsFilter
from nova.scheduler.provider_fit import PLAIN, topology_claims_of, tree_of
from nova.scheduler.views import HostView


class Shortfall(NamedTuple):
    """Amounts that a host lacks. ``share``: the missing part of the request, 0..; ``words``: the same as text without
    the host's name; ``asked``: the unmet parts of the request, for the user."""

    share: float
    words: tuple[str, ...]
    asked: tuple[str, ...]
    host: str


NOTHING = Shortfall(0.0, (), (), "")


def nearest(filter_: Filter, hosts: Sequence[HostView], request: PlacementRequest) -> Shortfall:
    """Return the closest miss of the hosts that a filter refused, or NOTHING if the filter measures no amounts."""
    if isinstance(filter_, CapacityFilter):
        lacking = _amounts
    elif isinstance(filter_, RequirementsFilter):
        lacking = _requirements
    elif isinstance(filter_, NUMATopologyFilter | PciPassthroughFilter):
        lacking = _places
    else:
        return NOTHING
    misses = [_sum(host.host, lacking(host, request)) for host in hosts]
    return min((one for one in misses if one.words), key=lambda shortfall: shortfall.share, default=NOTHING)


def _sum(host: str, parts: Iterable[tuple[float, str, str]]) -> Shortfall:
    found = list(parts)
    return Shortfall(sum(share for share, _, _ in found), tuple(words for _, words, _ in found),
                     tuple(asked for _, _, asked in found), host)


Parts = Iterator[tuple[float, str, str]]


def _amounts(host: HostView, request: PlacementRequest) -> Parts:
    for field, free, total, words in AMOUNTS:
        need, left = getattr(request.resources, field), available(host, free, total)
        if 0 < need > left:
            yield (need - left) / need, f"needs {need} {words}, {left} free", _asked(need, words)


def _asked(need: int, words: str) -> str:
    """Return the unmet amount for users: ``4096 MB memory`` -> not enough memory (4096 MB requested)."""
    *unit, what = words.split()
    return f"not enough {what} ({' '.join([str(need), *unit])} requested)"


def _requirements(host: HostView, request: PlacementRequest) -> Parts:
    """Yield resource classes of which no provider of the tree has enough, and traits that no provider has."""
    if request.requirements is None:
        return
    tree = tree_of(host)
    traits = {trait for one in tree for trait in one.traits}
    for group in request.requirements.request.groups:
        for any_of in group.required:
            if traits.isdisjoint(any_of):
                yield 1.0, f"needs trait {' or '.join(any_of)}", f"no trait {' or '.join(any_of)}"
        for trait in set(group.forbidden) & set(tree[0].traits):
            yield 1.0, f"has trait {trait}", f"trait {trait} is forbidden"
        for name, need in group.resources.items():
            if name in PLAIN:
                continue
            left = max((one.amounts[name].capacity - one.amounts[name].used for one in tree if name in one.amounts),
                       default=0)
            if left < need:
                yield (need - left) / need, f"needs {need} {name}, {left} free", f"not enough {name} ({need} requested)"


def _places(host: HostView, request: PlacementRequest) -> Parts:
    """Yield CPUs, memory and pages of which no NUMA cell has enough, and devices."""
    if request.requirements is None:
        return
    for lack in fit_shortfall.shortages(host.state.topology, topology_claims_of(host), request.requirements.topology):
        yield (lack.share, f"needs {lack.need} {lack.what}, {lack.free} free",
               f"not enough {lack.what} ({lack.need} requested)")


__all__ = ["NOTHING", "Shortfall", "nearest"]
