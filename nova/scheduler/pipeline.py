"""The scheduling pipeline: hosts, mandatory checks, enabled filters, weights, the best host and its alternates.

A frozen snapshot and a request go in, selections come out. Results are cached for requests of the same kind (see
``ranking_cache``), which changes the time of a decision but never its result.
"""

from __future__ import annotations

import contextlib
import functools
import heapq
import random
from collections.abc import Iterable, Sequence

import msgspec

from nova.model.scheduling.decisions import HostChoice, PlacementGroup, PlacementRequest, Selection
from nova.scheduler import plugins, prefilters, provider_fit, reasons
from nova.scheduler.filters import Filter, always, metrics, numa_topology, pci_passthrough, requirements, server_groups
from nova.scheduler.plugin_options import PluginOptions
from nova.scheduler.ranking import HostFilter, Ranking, Unrankable
from nova.scheduler.ranking_cache import Rankings
from nova.scheduler.snapshot import Snapshot
from nova.scheduler.views import HostView
from nova.scheduler.weighers import Weigher

FEW = 3  # largest request in servers for which a ranking without reuse does not pay off


class Pipeline:
    """The filters and weighers of one configuration (``[filter_scheduler]``). Raises daemon.SchedulerUnknownPlugin (see
    ``plugins``).

    ``ranks`` False: every decision checks every host.
    """

    def __init__(self, options: PluginOptions, rng: random.Random | None = None, ranks: bool = True) -> None:
        enabled = plugins.load_filters(options)
        implied = (*server_groups.ALWAYS, *([metrics.MetricsFilter] if metrics.required(options) else ()))
        missing = [cls for cls in implied if not any(isinstance(one, cls) for one in enabled)]
        asked = requirements.RequirementsFilter(options)
        dear = (pci_passthrough.PciPassthroughFilter(options), numa_topology.NUMATopologyFilter(options))
        self._always: tuple[Filter, ...] = (asked, *dear)  # also for a forced host: the claim would refuse it
        self.filters = (asked, *prefilters.load(options), *enabled, *(cls(options) for cls in missing), *dear)
        self._on_rebuild = tuple(one for one in self.filters if one.on_rebuild)
        self.weighers = plugins.load_weighers(options)
        self._subset = options.host_subset_size
        self._shuffle = options.shuffle_best_same_weighed_hosts
        self._rng = rng or random.Random()
        self._ranks = ranks and all(one.lasting for one in self.filters) and \
            all(type(one).weigh is not Weigher.weigh for one in self.weighers)
        self._rankings = Rankings()

    def decide(self, snapshot: Snapshot, request: PlacementRequest) -> tuple[Selection, ...]:
        """Return a selection per server, in order. Each counts for the next one, so that one request's servers
        spread."""
        selections = self._selections(snapshot, request)
        missing = request.server_uuids[len(selections):]
        if missing:
            reason = self._reason(snapshot, request, selections)
            selections.extend(Selection(server_uuid=uuid, reason=reason.public, details=reason.details,
                                        asked=reason.asked, refusals=reason.refusals) for uuid in missing)
        return tuple(selections)

    def _selections(self, snapshot: Snapshot, request: PlacementRequest) -> list[Selection]:
        """Return the selections of the servers for which there is a host."""
        kind = self._kind(snapshot, request) if self._ranks else None
        many = len(request.server_uuids) > FEW
        with contextlib.suppress(Unrankable):
            if kind is not None and snapshot.changes is not None and (self._rankings.worth(kind) or many):
                ranking = self._rankings.take_out(
                    kind, snapshot.changes, snapshot.hosts,
                    lambda hosts: Ranking(self._passing(request), self.weighers, request, hosts))
                found = self._by_ranking(ranking, request)
                self._rankings.put_back(kind, snapshot.changes, ranking)
                return found
            if self._ranks and many and kind is None and request.group is None:
                passing = functools.partial(self.candidates, request=request)
                return self._by_ranking(Ranking(passing, self.weighers, request, enumerate(snapshot.hosts)), request)
        return self._one_by_one(snapshot, request)

    def _kind(self, snapshot: Snapshot, request: PlacementRequest) -> bytes | None:
        """Return the key of requests with the same candidates and weights; None if the ranking is not worth caching."""
        if request.force or request.host or request.node or request.exclude or request.group or \
                snapshot.changes is None:
            return None
        asked = [(at, one.about(request)) for at, one in enumerate(self.asked(request)) if one.wanted(request)]
        weighed = [(at, one.about(request)) for at, one in enumerate(self.weighers) if not one.neutral(request)]
        return msgspec.msgpack.encode((request.resources, request.availability_zone, request.requirements,
                                       request.rebuild, request.cell, request.closed_cells, asked, weighed))

    def _passing(self, request: PlacementRequest) -> HostFilter:
        """Return :meth:`candidates` as a function, for a request without named hosts that is checked many times."""
        wanted = [one for one in self.asked(request) if one.wanted(request)]

        def passing(hosts: Iterable[HostView]) -> list[HostView]:
            passed = always.passing(hosts, request)
            for one in wanted:
                if not passed:
                    break
                passed = one.passing(passed, request)
            return passed
        return passing

    def _by_ranking(self, ranking: Ranking, request: PlacementRequest) -> list[Selection]:
        selections: list[Selection] = []
        choices: dict[int, HostChoice] = {}
        count = max(self._subset, 1) + request.alternates
        for uuid in request.server_uuids:
            best = ranking.best(count)
            if not best:
                break
            equal = ranking.equals() if self._shuffle else []
            ranked = self._picked(best, equal, count, request.alternates)
            for number in ranked:
                if number not in choices:
                    choices[number] = _choice(ranking.views[number])
            selections.append(Selection(server_uuid=uuid, hosts=tuple([choices[number] for number in ranked])))
            ranking.take(ranked[0], _taken(ranking.views[ranked[0]], request))
        return selections

    def _one_by_one(self, snapshot: Snapshot, request: PlacementRequest) -> list[Selection]:
        """Select hosts like ``_by_ranking``, but check every candidate for each of the servers."""
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
                candidates = self._filtered(candidates, request)
        return selections

    def candidates(self, hosts: Iterable[HostView], request: PlacementRequest) -> list[HostView]:
        """Return the hosts that no check or filter refuses, in their order."""
        if request.host is not None:
            hosts = [host for host in hosts if host.host == request.host]
        if request.node is not None:
            hosts = [host for host in hosts if host.node == request.node]
        if request.exclude:
            excluded = frozenset(request.exclude)
            hosts = [host for host in hosts if host.host not in excluded]
        passed = always.passing(hosts, request)
        return self._filtered(passed, request)

    def _filtered(self, hosts: list[HostView], request: PlacementRequest) -> list[HostView]:
        for filter_ in self.asked(request):
            if not hosts:
                break
            if filter_.wanted(request):
                hosts = filter_.passing(hosts, request)
        return hosts

    def asked(self, request: PlacementRequest) -> tuple[Filter, ...]:
        """Return the filters for this request: all, or the filters for a forced host or for a rebuild."""
        return self._always if request.force else self._on_rebuild if request.rebuild else self.filters

    def _choose(self, hosts: Sequence[HostView], request: PlacementRequest) -> list[int]:
        """Return the positions of the selected host and its alternates, the best first."""
        weights = self.weights(hosts, request)
        count = min(len(hosts), max(self._subset, 1) + request.alternates)
        best = heapq.nlargest(count, range(len(hosts)), key=weights.__getitem__)
        equal = [at for at, weight in enumerate(weights) if weight == weights[best[0]]] if self._shuffle else []
        return self._picked(best, equal, count, request.alternates)

    def _picked(self, best: list[int], equal: list[int], count: int, alternates: int) -> list[int]:
        """Return the selected host and its alternates, from the best (in order) and all hosts equal to the first."""
        if self._shuffle:
            others = [at for at in best if at not in set(equal)]
            self._rng.shuffle(equal)
            best = (equal + others)[:count]
        chosen = best[0] if self._subset <= 1 else self._rng.choice(best[:self._subset])
        return [chosen, *(at for at in best if at != chosen)][:1 + alternates]

    def weights(self, hosts: Sequence[HostView], request: PlacementRequest) -> list[float]:
        """Return a sum per host: each weigher's value, scaled to 0..1 from the lowest to the highest, times its
        multiplier."""
        overridden = {name for multipliers in {id(host.multipliers): host.multipliers for host in hosts}.values()
                      for name in multipliers}
        totals = [0.0] * len(hosts)
        for weigher in self.weighers:
            own = weigher.own_multipliers or weigher.multiplier_option in overridden
            if not (own or weigher.multiplier) or weigher.neutral(request):
                continue
            values = weigher.weigh_all(hosts, request)
            low, high = weigher.bounds(values)
            if low == high:
                continue
            if own:
                factors = [weigher.multiplier_of(host) / (high - low) for host in hosts]
                totals = [total + (value - low) * factor
                          for total, value, factor in zip(totals, values, factors, strict=True)]
            else:
                factor = weigher.multiplier / (high - low)
                totals = [total + (value - low) * factor for total, value in zip(totals, values, strict=True)]
        return totals

    def _take(self, hosts: list[HostView], at: int, request: PlacementRequest) -> None:
        """Count one more server on a host; the host is removed if it cannot take another."""
        taken = _taken(hosts[at], request)
        if self.candidates((taken,), request):
            hosts[at] = taken
        else:
            del hosts[at]

    def _reason(self, snapshot: Snapshot, request: PlacementRequest, made: Iterable[Selection]) -> reasons.Reason:
        """Return why the hosts, after the selections made, could not take one more server."""
        hosts = {(host.host, host.node): host for host in snapshot.hosts}
        for selection in made:
            key = selection.hosts[0].host, selection.hosts[0].node
            hosts[key] = _taken(hosts[key], request)
        return reasons.explain(tuple(hosts.values()), request, self.asked(request))


def _taken(host: HostView, request: PlacementRequest) -> HostView:
    """Return the host with one more of the request's servers."""
    return host.with_taken(request.resources, provider_fit.take(host, request.requirements))


def _with_member(request: PlacementRequest, group: PlacementGroup, host: str) -> PlacementRequest:
    """Return the request for its remaining servers, with one group member more on a host."""
    hosts = {**group.hosts, host: group.hosts.get(host, 0) + 1}
    return msgspec.structs.replace(request, group=msgspec.structs.replace(group, hosts=hosts))


def _choice(host: HostView) -> HostChoice:
    return HostChoice(host=host.host, node=host.node, provider_id=host.provider_id)
