"""Mandatory checks of every decision, independent of the enabled filters: service state, zone and capacity.

:func:`passing` checks all hosts in one step; the filters here check a single host and return the reason.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from nova.model.host.hosts import HostState
from nova.model.scheduling.decisions import PlacementRequest, Resources
from nova.scheduler.filters import Filter
from nova.scheduler.views import DISABLED, HostView

#: field of ``Resources``, field of ``HostView``, field of ``HostState``: maximum for one server; text
AMOUNTS = (
    ("vcpus", "free_vcpus", "vcpus_total", "vcpus"),
    ("memory_mb", "free_memory_mb", "memory_mb_total", "MB memory"),
    ("disk_gb", "free_disk_gb", "disk_gb_total", "GB disk"),
)

ANYTHING = float("-inf")


class _Limits(NamedTuple):
    """Amounts that must be free. A server that needs none of an amount may use a host that is overcommitted in it."""

    vcpus: float
    memory_mb: float
    disk_gb: float


def _limits(need: Resources) -> _Limits:
    return _Limits(need.vcpus or ANYTHING, need.memory_mb or ANYTHING, need.disk_gb or ANYTHING)


def has_so_much(state: HostState, need: Resources) -> bool:
    """Return whether the host's own total is at least the server's size, independent of allocation ratios. A total of 0
    is not known yet."""
    return (need.vcpus <= (state.vcpus_total or need.vcpus) and need.disk_gb <= (state.disk_gb_total or need.disk_gb)
            and need.memory_mb <= (state.memory_mb_total or need.memory_mb))


def available(host: HostView, free: str, total: str) -> int:
    """Return the amount that one more server can get at most; the fields are from :data:`AMOUNTS`."""
    left: int = getattr(host, free)
    return min(left, getattr(host.state, total) or left)


def passing(hosts: Iterable[HostView], request: PlacementRequest) -> list[HostView]:
    """Return the hosts that no filter of this module refuses."""
    if request.cell or request.closed_cells:
        hosts = [host for host in hosts if CELL_FILTER.refuses(host, request) is None]
    vcpus, memory_mb, disk_gb = _limits(request.resources)
    if request.force:  # by an admin, who may want to test a disabled host
        return [host for host in hosts if host.up and not host.state.forced_down and host.free_vcpus >= vcpus
                and host.free_memory_mb >= memory_mb and host.free_disk_gb >= disk_gb
                and has_so_much(host.state, request.resources)]
    found = [host for host in hosts if host.usable and host.free_memory_mb >= memory_mb
             and host.free_vcpus >= vcpus and host.free_disk_gb >= disk_gb
             and has_so_much(host.state, request.resources)]
    zone = request.availability_zone
    return [host for host in found if host.zone == zone] if zone else found


class ComputeFilter(Filter):
    """The host's service must be enabled and up."""

    always_on = True

    def refuses(self, host: HostView, request: PlacementRequest) -> str | None:
        if host.state.forced_down:
            return "forced down"
        if not host.up:
            return "down"
        enabled = host.state.enabled and DISABLED not in host.facts.traits
        return None if enabled or request.force else "disabled"


class AvailabilityZoneFilter(Filter):
    """The host must be in the requested zone."""

    always_on = True

    def refuses(self, host: HostView, request: PlacementRequest) -> str | None:
        zone = request.availability_zone
        return None if not zone or request.force or host.zone == zone else f"not in zone {zone}"


class CellFilter(Filter):
    """The host must be in the server's cell, if it cannot leave it, and not in a disabled cell."""

    always_on = True

    def refuses(self, host: HostView, request: PlacementRequest) -> str | None:
        if request.cell and host.state.cell != request.cell:
            return "in another cell"
        return "in a disabled cell" if host.state.cell in request.closed_cells and not request.force else None


CELL_FILTER = CellFilter()


class CapacityFilter(Filter):
    """The host must have enough free vcpus, memory and disk, and must not be smaller than the server."""

    always_on = True
    fields: tuple[tuple[str, str, str, str], ...] = AMOUNTS

    @property
    def name(self) -> str:
        return "capacity"

    def refuses(self, host: HostView, request: PlacementRequest) -> str | None:
        lacking = [words for field, free, total, words in self.fields
                   if 0 < getattr(request.resources, field) > available(host, free, total)]
        return "not enough " + ", ".join(words.split()[-1] for words in lacking) if lacking else None


class RamFilter(CapacityFilter):
    """An old name, without effect: capacity is always checked."""

    fields = AMOUNTS[1:2]


class CoreFilter(CapacityFilter):
    """An old name, without effect: capacity is always checked."""

    fields = AMOUNTS[0:1]


class DiskFilter(CapacityFilter):
    """An old name, without effect: capacity is always checked."""

    fields = AMOUNTS[2:3]


#: The mandatory checks, in the order in which refusals are reported.
CHECKS: tuple[Filter, ...] = (ComputeFilter(), CELL_FILTER, AvailabilityZoneFilter(), CapacityFilter())

#: Names that ``enabled_filters`` may contain without any effect.
NAMES: tuple[type[Filter], ...] = (ComputeFilter, AvailabilityZoneFilter, RamFilter, CoreFilter, DiskFilter)
