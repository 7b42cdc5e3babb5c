"""Filters: each says yes, or why not. One file a filter.

An operator's own filter is a subclass of :class:`Filter`; its dotted path goes into
``[filter_scheduler]available_filters``, its class name into ``enabled_filters``.
"""

from __future__ import annotations

from typing import Any

from nova.model.scheduling import PlacementRequest
from nova.scheduler.views import HostView


class Filter:
    """One yes-or-why-not question about a host. Made once, with the options of ``[filter_scheduler]``."""

    always_on = False  # checked in every decision, whether it is enabled or not
    public = False  # its reasons hold nothing about hosts, so that users may read them

    def __init__(self, options: Any = None) -> None:
        self.options = options

    @property
    def name(self) -> str:
        """What operators call it, in configuration and in reasons."""
        return type(self).__name__

    def wanted(self, request: PlacementRequest) -> bool:
        """False when the request asks nothing of this filter: no host is looked at then."""
        return True

    def by_facts(self, request: PlacementRequest) -> bool:
        """True when the answer depends on ``host.facts`` alone, so that alike hosts are asked about once."""
        return False

    def refuses(self, host: HostView, request: PlacementRequest) -> str | None:
        """Why this host can not take the request's servers, in a few words without the host's name; None: it can."""
        raise NotImplementedError


def all_filters() -> list[type[Filter]]:
    """Every filter that comes with us: the default of ``[filter_scheduler]available_filters``."""
    from nova.scheduler.filters import all_hosts, always, compute_capabilities, image_properties, server_groups

    return [all_hosts.AllHostsFilter, compute_capabilities.ComputeCapabilitiesFilter,
            image_properties.ImagePropertiesFilter, server_groups.ServerGroupAffinityFilter,
            server_groups.ServerGroupAntiAffinityFilter, *always.NAMES]
