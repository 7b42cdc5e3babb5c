"""Filters: each says yes, or why not. One file a filter.

An operator's own filter is a subclass of :class:`Filter`, or of :class:`BaseHostFilter` in OpenStack's form; its dotted
path goes into ``[filter_scheduler]available_filters``, its class name into ``enabled_filters``.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable

from nova.conf.base import Options
from nova.model.scheduling.decisions import PlacementRequest
from nova.scheduler.plugin_objects import PluginHostState, RequestSpec
from nova.scheduler.views import HostAggregates, HostFacts, HostView

#: What a request says of where; the others say which servers, and how many choices.
ALL_FIELDS = tuple(name for name in PlacementRequest.__struct_fields__ if name not in ("server_uuids", "alternates"))


class Filter:
    """One yes-or-why-not question about a host. Made once, with the options of ``[filter_scheduler]``."""

    always_on = False  # checked in every decision, whether it is enabled or not
    public = False  # its reasons hold nothing about hosts, so that users may read them
    #: Fields of the request that its verdict depends on, so that it is kept for requests that are alike in these;
    #: None: on any of them. Of ``group`` it may depend on the host's own count, and on whether there are members.
    reads: tuple[str, ...] | None = None
    on_rebuild = False  # asked, too, whether a server's own host suits another image
    lasting = True  # its verdict depends on the host and the request alone, so that it is kept until these change

    def __init__(self, options: Options = None) -> None:
        """``options``: ``[filter_scheduler]``; as ``options.metrics`` and ``options.scheduler`` these groups, too."""
        self.options = options

    @property
    def name(self) -> str:
        """What operators call it, in configuration and in reasons."""
        return type(self).__name__

    def about(self, request: PlacementRequest) -> object:
        """What of the request the verdict depends on, as plain values: that of the fields it ``reads``, or less."""
        return {name: getattr(request, name) for name in (ALL_FIELDS if self.reads is None else self.reads)}

    def wanted(self, request: PlacementRequest) -> bool:
        """False when the request asks nothing of this filter: no host is looked at then."""
        return True

    def by_facts(self, request: PlacementRequest) -> bool:
        """True when the answer depends on ``host.facts`` alone, so that alike hosts are asked about once."""
        return False

    def by_aggregates(self, request: PlacementRequest) -> bool:
        """True when the answer depends on ``host.aggregates`` alone, likewise."""
        return False

    def refuses(self, host: HostView, request: PlacementRequest) -> str | None:
        """Why this host cannot take the request's servers, in a few words without the host's name; None: it can."""
        raise NotImplementedError

    def passing(self, hosts: list[HostView], request: PlacementRequest) -> list[HostView]:
        """The hosts that it does not refuse; those that are alike are asked about once where that is enough. A
        subclass may do this faster."""
        shared = _FACTS if self.by_facts(request) else _AGGREGATES if self.by_aggregates(request) else None
        if shared is None:
            return [host for host in hosts if self.refuses(host, request) is None]
        verdicts: dict[HostFacts | HostAggregates, bool] = {}
        passed = []
        for host in hosts:
            part = shared(host)
            verdict = verdicts.get(part)
            if verdict is None:
                verdict = verdicts[part] = self.refuses(host, request) is None
            if verdict:
                passed.append(host)
        return passed


class BaseHostFilter(Filter):
    """The base of operators' own filters in OpenStack's form: a subclass has ``host_passes``."""

    RUN_ON_REBUILD = False
    run_filter_once_per_request = False  # here a filter is asked again whenever a host has changed
    lasting = False  # it may ask the time, or other services

    def __init__(self) -> None:
        super().__init__()
        self.on_rebuild = self.RUN_ON_REBUILD

    def host_passes(self, host_state: PluginHostState, filter_properties: RequestSpec) -> bool:
        """Whether the host can take the request's servers."""
        raise NotImplementedError

    def filter_all(self, filter_obj_list: Iterable[PluginHostState],
                   spec_obj: RequestSpec) -> Iterable[PluginHostState]:
        """The hosts that pass. A subclass may look at all of them together."""
        return (host for host in filter_obj_list if self.host_passes(host, spec_obj))

    def refuses(self, host: HostView, request: PlacementRequest) -> str | None:
        """Why this host is refused, as far as such a filter says it."""
        return None if self.passing([host], request) else "it does not pass"

    def passing(self, hosts: list[HostView], request: PlacementRequest) -> list[HostView]:
        """As the scheduler asks all its filters."""
        states = [PluginHostState.of(host) for host in hosts]
        passed = {id(state) for state in self.filter_all(states, RequestSpec.of(request))}
        return [host for host, state in zip(hosts, states, strict=True) if id(state) in passed]


_FACTS, _AGGREGATES = operator.attrgetter("facts"), operator.attrgetter("aggregates")


def all_filters() -> list[type[Filter]]:
    """Every filter that comes with us: the default of ``[filter_scheduler]available_filters``."""
    from nova.scheduler.filters import (
        aggregate_extra_specs,
        aggregate_image_properties,
        aggregate_members,
        all_hosts,
        always,
        cidr_affinity,
        compute_capabilities,
        host_limits,
        image_properties,
        isolated_hosts,
        json_query,
        metrics,
        numa_topology,
        other_servers,
        pci_passthrough,
        server_groups,
    )

    return [aggregate_image_properties.AggregateImagePropertiesIsolation,
            aggregate_extra_specs.AggregateInstanceExtraSpecsFilter, *aggregate_members.FILTERS, *host_limits.FILTERS,
            all_hosts.AllHostsFilter, compute_capabilities.ComputeCapabilitiesFilter, *other_servers.FILTERS,
            image_properties.ImagePropertiesFilter, isolated_hosts.IsolatedHostsFilter, json_query.JsonFilter,
            metrics.MetricsFilter, numa_topology.NUMATopologyFilter, pci_passthrough.PciPassthroughFilter,
            server_groups.ServerGroupAffinityFilter,
            server_groups.ServerGroupAntiAffinityFilter, cidr_affinity.SimpleCIDRAffinityFilter, *always.NAMES]
