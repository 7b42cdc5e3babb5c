"""Weighers: each returns a number per host. The numbers are scaled to 0..1, multiplied and summed. One module each.

An operator's own weigher is a subclass of :class:`Weigher`; its dotted path is added to
``[filter_scheduler]weight_classes``.
"""

from __future__ import annotations

from collections.abc import Sequence

from nova.model.scheduling.decisions import PlacementRequest
from nova.scheduler.filters import ALL_FIELDS
from nova.scheduler.plugin_options import PluginOptions
from nova.scheduler.views import HostView


class Weigher:
    """A preference among hosts. Created once, with the options of ``[filter_scheduler]``, and two more groups as
    ``options.metrics`` and ``options.scheduler``."""

    multiplier_option = ""  # option, and key of aggregate metadata, with the multiplier
    #: Fields of the request that a host's value depends on, so that values are shared by requests that are equal in
    #: these; None: all fields. (``resources``, ``availability_zone``, ``image_properties`` ... differ between
    #: requests.)
    reads: tuple[str, ...] | None = None
    own_multipliers = False  # hosts' multipliers may differ even if no aggregate sets one

    def __init__(self, options: PluginOptions | None = None) -> None:
        self.options = options
        self.multiplier = float(getattr(options, self.multiplier_option, 1.0)) if self.multiplier_option else 1.0

    def about(self, request: PlacementRequest) -> object:
        """Return the request's data that the values depend on, as plain values: the fields it ``reads``, or less."""
        return {name: getattr(request, name) for name in (ALL_FIELDS if self.reads is None else self.reads)}

    def neutral(self, request: PlacementRequest) -> bool:
        """Return True if all hosts are equal for this request: no host is weighed then."""
        return False

    def weigh(self, host: HostView, request: PlacementRequest) -> float:
        """Return the host's value; more is better. Any scale: it is mapped to 0..1 between the lowest and highest host.
        It may only depend on the host and the request, and is evaluated again only for hosts that changed."""
        raise NotImplementedError

    def weigh_all(self, hosts: Sequence[HostView], request: PlacementRequest) -> list[float]:
        """Return a value for each host. A subclass may do this faster."""
        return [self.weigh(host, request) for host in hosts]

    def bounds(self, values: Sequence[float]) -> tuple[float, float]:
        """Return the values that are scaled to 0 and 1."""
        return min(values), max(values)

    def multiplier_of(self, host: HostView) -> float:
        """Return the multiplier for a host, whose aggregates may have set it."""
        return host.multipliers.get(self.multiplier_option, self.multiplier)


def all_weighers() -> list[type[Weigher]]:
    """Return every weigher of nova: the default of ``[filter_scheduler]weight_classes``."""
    from nova.scheduler.weighers import (
        build_failures,
        cpu,
        cross_cell,
        disk,
        hypervisor_version,
        image_properties,
        io_ops,
        metrics,
        num_instances,
        pci,
        ram,
        server_groups,
    )

    return [build_failures.BuildFailureWeigher, cpu.CPUWeigher, cross_cell.CrossCellWeigher, disk.DiskWeigher,
            hypervisor_version.HypervisorVersionWeigher, image_properties.ImagePropertiesWeigher, io_ops.IoOpsWeigher,
            metrics.MetricsWeigher, num_instances.NumInstancesWeigher, pci.PCIWeigher, ram.RAMWeigher,
            server_groups.ServerGroupSoftAffinityWeigher, server_groups.ServerGroupSoftAntiAffinityWeigher]
