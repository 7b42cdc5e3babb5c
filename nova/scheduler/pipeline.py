"""One decision: hosts, what is always checked, enabled filters, weights, the best and its alternates.

Pure: a frozen snapshot and a request go in, proposals come out.
"""

from __future__ import annotations

import heapq
import random
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from nova.model.scheduling import HostChoice, PlacementGroup, PlacementRequest, Selection
from nova.scheduler import plugins, reasons
from nova.scheduler.filters import Filter, always, server_groups
from nova.scheduler.snapshot import Snapshot
from nova.scheduler.views import HostFacts, HostView
from nova.scheduler.weighers import Weigher


class Pipeline:
    """The filters and weighers of one configuration (``[filter_scheduler]``). UnknownPlugin: see ``plugins``."""

    def __init__(self, options: Any, rng: random.Random | None = None) -> None:
        enabled = plugins.load_filters(options)
        missing = [cls for cls in server_groups.ALWAYS if not any(isinstance(one, cls) for one in enabled)]
        self.filters = (*enabled, *(cls(options) for cls in missing))
        self.weighers = plugins.load_weighers(options)
        self._subset = options.host_subset_size
        self._shuffle = options.shuffle_best_same_weighed_hosts
        self._rng = rng or random.Random()

    def decide(self, snapshot: Snapshot, request: PlacementRequest) -> tuple[Selection, ...]:
        """A selection a server, in order. Each counts for the next, so that one request's servers spread."""
        candidates = self.candidates(snapshot.hosts, request)
        selections: list[Selection] = []
        for uuid in request.server_uuids:
            if not candidates:
                break
            ranked = self._choose(candidates, request)
            selections.append(Selection(server_uuid=uuid, hosts=tuple(_choice(candidates[at]) for at in ranked)))
            chosen = candidates[ranked[0]].host
            self._take(candidates, ranked[0], request)
            if request.group is not None:
                request = _with_member(request, request.group, chosen)
                candidates = candidates if request.force else self._filtered(candidates, request)
        missing = request.server_uuids[len(selections):]
        if missing:
            reason = self._reason(snapshot, request, selections)
            selections.extend(Selection(server_uuid=uuid, reason=reason.public, details=reason.details)
                              for uuid in missing)
        return tuple(selections)

    def candidates(self, hosts: Iterable[HostView], request: PlacementRequest) -> list[HostView]:
        """The hosts that nothing refuses, in their order."""
        if request.host is not None:
            hosts = [host for host in hosts if host.host == request.host]
        if request.node is not None:
            hosts = [host for host in hosts if host.node == request.node]
        if request.exclude:
            excluded = frozenset(request.exclude)
            hosts = [host for host in hosts if host.host not in excluded]
        passed = always.passing(hosts, request)
        return passed if request.force else self._filtered(passed, request)

    def _filtered(self, hosts: list[HostView], request: PlacementRequest) -> list[HostView]:
        for filter_ in self.filters:
            if not hosts:
                break
            if filter_.wanted(request):
                hosts = _passing(filter_, hosts, request)
        return hosts

    def _choose(self, hosts: Sequence[HostView], request: PlacementRequest) -> list[int]:
        """Positions of the chosen host and of its alternates, the best first."""
        weights = self.weights(hosts, request)
        count = min(len(hosts), max(self._subset, 1) + request.alternates)
        best = heapq.nlargest(count, range(len(hosts)), key=weights.__getitem__)
        if self._shuffle:
            equal = [at for at, weight in enumerate(weights) if weight == weights[best[0]]]
            self._rng.shuffle(equal)
            best = (equal + [at for at in best if weights[at] != weights[best[0]]])[:count]
        chosen = best[0] if self._subset <= 1 else self._rng.choice(best[:self._subset])
        return [chosen, *(at for at in best if at != chosen)][:1 + request.alternates]

    def weights(self, hosts: Sequence[HostView], request: PlacementRequest) -> list[float]:
        """A sum a host: each weigher's value, scaled to 0..1 from the lowest to the highest, times its multiplier."""
        overridden = any(host.multipliers for host in hosts)
        totals = [0.0] * len(hosts)
        for weigher in self.weighers:
            values = weigher.weigh_all(hosts, request)
            low, high = min(values), max(values)
            if low == high:
                continue
            if overridden:
                factors = _factors(weigher, hosts, high - low)
                totals = [total + (value - low) * factor
                          for total, value, factor in zip(totals, values, factors, strict=True)]
            elif weigher.multiplier:
                factor = weigher.multiplier / (high - low)
                totals = [total + (value - low) * factor for total, value in zip(totals, values, strict=True)]
        return totals

    def _take(self, hosts: list[HostView], at: int, request: PlacementRequest) -> None:
        """Count one more server on a host; the host goes when it can take no other."""
        taken = hosts[at].with_taken(request.resources)
        if self.candidates((taken,), request):
            hosts[at] = taken
        else:
            del hosts[at]

    def _reason(self, snapshot: Snapshot, request: PlacementRequest, made: Iterable[Selection]) -> reasons.Reason:
        """Why the hosts as they are after the selections made could not take one server more."""
        hosts = {(host.host, host.node): host for host in snapshot.hosts}
        for selection in made:
            key = selection.hosts[0].host, selection.hosts[0].node
            hosts[key] = hosts[key].with_taken(request.resources)
        return reasons.explain(tuple(hosts.values()), request, self.filters)


def _with_member(request: PlacementRequest, group: PlacementGroup, host: str) -> PlacementRequest:
    """The request for the others of its servers, once one is on its way to a host."""
    hosts = {**group.hosts, host: group.hosts.get(host, 0) + 1}
    return msgspec.structs.replace(request, group=msgspec.structs.replace(group, hosts=hosts))


def _passing(filter_: Filter, hosts: list[HostView], request: PlacementRequest) -> list[HostView]:
    """The hosts that a filter does not refuse; hosts that are alike are asked about once where that is enough."""
    if not filter_.by_facts(request):
        return [host for host in hosts if filter_.refuses(host, request) is None]
    verdicts: dict[HostFacts, bool] = {}
    passed = []
    for host in hosts:
        verdict = verdicts.get(host.facts)
        if verdict is None:
            verdict = verdicts[host.facts] = filter_.refuses(host, request) is None
        if verdict:
            passed.append(host)
    return passed


def _factors(weigher: Weigher, hosts: Sequence[HostView], span: float) -> list[float]:
    return [host.multipliers.get(weigher.multiplier_option, weigher.multiplier) / span for host in hosts]


def _choice(host: HostView) -> HostChoice:
    return HostChoice(host=host.host, node=host.node, provider_id=host.provider_id)
