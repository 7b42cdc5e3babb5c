"""Requirements of flavor and image beyond vcpus, memory and disk: traits, aggregates, other resources, in groups.

The claim applies the same rule again (:mod:`nova.model.placement.candidates`), so this filter is always active.
"""

from __future__ import annotations

from collections.abc import Sequence

from nova.model.host.hosts import HostState
from nova.model.placement.candidates import ParsedRequest
from nova.model.placement.providers import RequestGroup, ResourceRequest
from nova.model.scheduling.decisions import PlacementRequest
from nova.scheduler.filters import Filter
from nova.scheduler.plugin_options import PluginOptions
from nova.scheduler.provider_fit import PLAIN, Fit, tree_of
from nova.scheduler.views import HostView


class RequirementsFilter(Filter):
    """The host must have the traits, aggregates and other resources that the flavor and image require."""

    always_on = public = on_rebuild = True
    reads = ("requirements",)

    def __init__(self, options: PluginOptions | None = None) -> None:
        super().__init__(options)
        self._rule: tuple[ResourceRequest, ParsedRequest] | None = None  # of the last request, for all its hosts

    @property
    def name(self) -> str:
        return "resources and traits"

    def wanted(self, request: PlacementRequest) -> bool:
        return request.requirements is not None

    def refuses(self, host: HostView, request: PlacementRequest) -> str | None:
        if request.requirements is None:
            return None
        wanted = request.requirements.request
        if not host.state.children and _is_flat(wanted.groups) and not wanted.root_required:
            return _flat_refusal(host, wanted.groups[0], wanted.root_forbidden) if wanted.groups else None
        rule, tree = self._rule_of(wanted), tree_of(host)
        return None if rule.first(tree) is not None else rule.why_not(tree)

    def _rule_of(self, wanted: ResourceRequest) -> ParsedRequest:
        kept = self._rule  # one read: another thread may replace it meanwhile
        if kept is None or kept[0] is not wanted:
            kept = self._rule = wanted, ParsedRequest(wanted)
        return kept[1]


def _is_flat(groups: Sequence[RequestGroup]) -> bool:
    return not groups or (len(groups) == 1 and not groups[0].suffix and groups[0].in_tree is None)


def _flat_refusal(host: HostView, group: RequestGroup, root_forbidden: Sequence[str]) -> str | None:
    """Return the refusal by the general rule, for one group on a node without child providers; vcpus, memory and disk
    are already checked."""
    traits = host.facts.traits
    for any_of in group.required:
        if traits.isdisjoint(any_of):
            return f"no trait {' or '.join(any_of)}"
    for trait in (*group.forbidden, *root_forbidden):
        if trait in traits:
            return f"trait {trait} is forbidden"
    if group.member_of or group.not_member_of:
        mine = {*host.state.own_aggregates, *host.state.aggregate_uuids}
        if not mine.isdisjoint(group.not_member_of) or any(mine.isdisjoint(any_of) for any_of in group.member_of):
            return "not in a requested aggregate"
    for name, amount in group.resources.items():
        if name not in PLAIN:
            lack = _lack(host.state, host.fits, name, amount)
            if lack:
                return lack
    return None


def _lack(state: HostState, fits: Sequence[Fit], name: str, amount: int) -> str | None:
    have = state.amounts.get(name)
    if have is None:
        return f"no {name}"
    pending = sum(fit.amounts.get(state.provider_id, {}).get(name, 0) for fit in fits)
    is_enough = (have.used + pending + amount <= have.capacity and have.min_unit <= amount <= have.max_unit
                 and amount % have.step_size == 0)
    return None if is_enough else f"not enough {name}"
