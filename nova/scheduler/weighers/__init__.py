"""Weighers: each gives every host a number; scaled to 0..1, times its multiplier, they are summed. One file each.

An operator's own weigher is a subclass of :class:`Weigher`; its dotted path goes into
``[filter_scheduler]weight_classes``.
"""

from __future__ import annotations

from collections.abc import Sequence

from nova.conf.base import Options
from nova.model.scheduling.decisions import PlacementRequest
from nova.scheduler.filters import ALL_FIELDS
from nova.scheduler.views import HostView


class Weigher:
    """How much a host is liked. Made once, with the options of ``[filter_scheduler]``; as ``options.metrics`` and
    ``options.scheduler`` these groups, too."""

    multiplier_option = ""  # the option, and key of aggregate metadata, that has the multiplier
    #: Fields of the request that a host's value depends on, so that it is kept for requests that are alike in these;
    #: None: on any of them. (``resources``, ``availability_zone``, ``image_properties`` ... are a request's own.)
    reads: tuple[str, ...] | None = None
    own_multipliers = False  # hosts' multipliers may differ even where no aggregate sets one

    def __init__(self, options: Options = None) -> None:
        self.options = options
        self.multiplier = float(getattr(options, self.multiplier_option, 1.0)) if self.multiplier_option else 1.0

    def about(self, request: PlacementRequest) -> object:
        """What of the request the values depend on, as plain values: the fields it ``reads``, or less."""
        return {name: getattr(request, name) for name in (ALL_FIELDS if self.reads is None else self.reads)}

    def neutral(self, request: PlacementRequest) -> bool:
        """True when all hosts are alike to it for this request: none is looked at then."""
        return False

    def weigh(self, host: HostView, request: PlacementRequest) -> float:
        """More is better. Any scale: it is mapped to 0..1 between the lowest and highest host. It depends on the host
        and the request alone, and is asked again only for hosts that changed."""
        raise NotImplementedError

    def weigh_all(self, hosts: Sequence[HostView], request: PlacementRequest) -> list[float]:
        """One number a host. A subclass may do this faster."""
        return [self.weigh(host, request) for host in hosts]

    def bounds(self, values: Sequence[float]) -> tuple[float, float]:
        """The values that become 0 and 1."""
        return min(values), max(values)

    def multiplier_of(self, host: HostView) -> float:
        """The multiplier for a host, whose aggregates may have set it."""
        return host.multipliers.get(self.multiplier_option, self.multiplier)


def all_weighers() -> list[type[Weigher]]:
    """Every weigher that comes with us: the default of ``[filter_scheduler]weight_classes``."""
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
