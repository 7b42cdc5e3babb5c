"""Filters: each accepts a host or returns a reason to refuse it. One module per filter.

An operator's own filter is a subclass of :class:`Filter`, or of :class:`BaseHostFilter` in OpenStack's form. Its dotted
path is added to ``[filter_scheduler]available_filters``, its class name to ``enabled_filters``.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable

from nova.model.scheduling.decisions import PlacementRequest
from nova.scheduler.plugin_objects import PluginHostState, RequestSpec
from nova.scheduler.plugin_options import PluginOptions
from nova.scheduler.views import HostAggregates, HostFacts, HostView

#: Fields of a request that affect the choice of a host; the others name the servers and the number of choices.
ALL_FIELDS = tuple(name for name in PlacementRequest.__struct_fields__ if name not in ("server_uuids", "alternates"))


class Filter:
    """A check of a host. Created once, with the options of ``[filter_scheduler]``."""

    always_on = False  # checked in every decision, whether it is enabled or not
    public = False  # its reasons disclose nothing about hosts, so users may read them
    #: Fields of the request that its verdict depends on, so that verdicts are shared by requests that are equal in
    #: these; None: all fields. Of ``group`` it may depend on the host's own count, and on whether there are members.
    reads: tuple[str, ...] | None = None
    on_rebuild = False  # also checked when a server is rebuilt with another image
    lasting = True  # its verdict only depends on the host and the request, so it is cached until these change

    def __init__(self, options: PluginOptions | None = None) -> None:
        """``options``: ``[filter_scheduler]``, with two more groups as ``options.metrics`` and
        ``options.scheduler``."""
        self.options = options

    @property
    def name(self) -> str:
        """The filter's name in the configuration and in reasons."""
        return type(self).__name__

    def about(self, request: PlacementRequest) -> object:
        """Return the request's data that the verdict depends on, as plain values: the fields it ``reads``, or less."""
        return {name: getattr(request, name) for name in (ALL_FIELDS if self.reads is None else self.reads)}

    def wanted(self, request: PlacementRequest) -> bool:
        """Return False if the request has no requirement for this filter: no host is checked then."""
        return True

    def by_facts(self, request: PlacementRequest) -> bool:
        """Return True if the verdict only depends on ``host.facts``, so that equal hosts are checked once."""
        return False

    def by_aggregates(self, request: PlacementRequest) -> bool:
        """Return True if the verdict only depends on ``host.aggregates``, so that equal hosts are checked once."""
        return False

    def refuses(self, host: HostView, request: PlacementRequest) -> str | None:
        """Return why this host cannot take the request's servers, in a few words without the host's name; None if it
        can."""
        raise NotImplementedError

    def passing(self, hosts: list[HostView], request: PlacementRequest) -> list[HostView]:
        """Return the hosts that it does not refuse; equal hosts are checked once if that is sufficient. A subclass may
        do this faster."""
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
    """Base class of operators' own filters in OpenStack's form: a subclass has ``host_passes``."""

    RUN_ON_REBUILD = False
    run_filter_once_per_request = False  # a filter is called again here when a host has changed
    lasting = False  # it may depend on the time or on other services

    def __init__(self) -> None:
        super().__init__()
        self.on_rebuild = self.RUN_ON_REBUILD

    def host_passes(self, host_state: PluginHostState, filter_properties: RequestSpec) -> bool:
        """Return whether the host can take the request's servers."""
        raise NotImplementedError

    def filter_all(self, filter_obj_list: Iterable[PluginHostState],
                   spec_obj: RequestSpec) -> Iterable[PluginHostState]:
        """Return the hosts that pass. A subclass may check all of them together."""
        return (host for host in filter_obj_list if self.host_passes(host, spec_obj))

    def refuses(self, host: HostView, request: PlacementRequest) -> str | None:
        """Return why this host is refused, as far as such a filter reports it."""
        return None if self.passing([host], request) else "it does not pass"

    def passing(self, hosts: list[HostView], request: PlacementRequest) -> list[HostView]:
        """Return the hosts that pass, as the scheduler calls all filters."""
        states = [PluginHostState.of(host) for host in hosts]
        passed = {id(state) for state in self.filter_all(states, RequestSpec.of(request))}
        return [host for host, state in zip(hosts, states, strict=True) if id(state) in passed]


_FACTS, _AGGREGATES = operator.attrgetter("facts"), operator.attrgetter("aggregates")


def all_filters() -> list[type[Filter]]:
    """Return every filter of nova: the default of ``[filter_scheduler]available_filters``."""
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
