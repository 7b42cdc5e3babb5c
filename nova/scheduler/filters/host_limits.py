"""Limits of a host's load: IoOpsFilter, NumInstancesFilter, and both with limits that aggregates set."""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable
from typing import ClassVar

from nova.model.scheduling.decisions import PlacementRequest
from nova.scheduler.filters import Filter
from nova.scheduler.views import HostView

LOG = logging.getLogger(__name__)


def busy(host: HostView) -> int:
    """Return the number of servers with heavy I/O on the host: being built, resized or copied, or just selected for
    it."""
    return host.busy + host.pending


def servers(host: HostView) -> int:
    """Return the number of servers on the host: reported ones, and pending ones without a report."""
    return host.state.instances + host.pending


class _LimitFilter(Filter):
    """Hosts with fewer than the option's limit."""

    reads = ()
    option: ClassVar[str]
    count: ClassVar[Callable[[HostView], int]]
    what: ClassVar[str]

    def refuses(self, host: HostView, request: PlacementRequest) -> str | None:
        limit = self.limit(host)
        return None if type(self).count(host) < limit else f"is at its limit of {limit} {self.what}"

    def limit(self, host: HostView) -> int:
        number: int = getattr(self.options, self.option)
        return number


class _AggregateLimitFilter(_LimitFilter):
    """Limit by the lowest value that an aggregate of the host sets under the option's name, if there is one."""

    def limit(self, host: HostView) -> int:
        values = host.aggregates.values.get(self.option)
        lowest = None if values is None else lowest_of(self.option, values)
        return super().limit(host) if lowest is None else lowest


@functools.lru_cache(maxsize=1024)
def lowest_of(key: str, values: frozenset[str]) -> int | None:
    """Return the lowest of these numbers; other values are skipped. (Cached, so that the warning is logged once.)"""
    numbers = [int(value) for value in values if value.isascii() and value.isdecimal()]
    if len(numbers) < len(values):
        LOG.warning("Aggregate metadata %s=%s: skipped values that are not numbers", key,
                    ",".join(sorted(values)))
    return min(numbers, default=None)


class IoOpsFilter(_LimitFilter):
    option, count, what = "max_io_ops_per_host", busy, "builds, moves and copies at one time"


class AggregateIoOpsFilter(_AggregateLimitFilter):
    option, count, what = IoOpsFilter.option, busy, IoOpsFilter.what


class NumInstancesFilter(_LimitFilter):
    option, count, what = "max_instances_per_host", servers, "servers"


class AggregateNumInstancesFilter(_AggregateLimitFilter):
    option, count, what = NumInstancesFilter.option, servers, NumInstancesFilter.what


FILTERS: tuple[type[Filter], ...] = (IoOpsFilter, AggregateIoOpsFilter, NumInstancesFilter,
                                     AggregateNumInstancesFilter)
