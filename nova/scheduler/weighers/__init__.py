"""Weighers: each gives every host a number; scaled to 0..1, times its multiplier, they are summed. One file each.

An operator's own weigher is a subclass of :class:`Weigher`; its dotted path goes into
``[filter_scheduler]weight_classes``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from nova.model.scheduling import PlacementRequest
from nova.scheduler.views import HostView


class Weigher:
    """How much a host is liked. Made once, with the options of ``[filter_scheduler]``."""

    multiplier_option = ""  # the option, and key of aggregate metadata, that has the multiplier

    def __init__(self, options: Any = None) -> None:
        self.options = options
        self.multiplier = float(getattr(options, self.multiplier_option, 1.0)) if self.multiplier_option else 1.0

    def weigh(self, host: HostView, request: PlacementRequest) -> float:
        """More is better. Any scale: it is mapped to 0..1 between the lowest and highest host."""
        raise NotImplementedError

    def weigh_all(self, hosts: Sequence[HostView], request: PlacementRequest) -> list[float]:
        """One number a host. A subclass may do this faster."""
        return [self.weigh(host, request) for host in hosts]


def all_weighers() -> list[type[Weigher]]:
    """Every weigher that comes with us: the default of ``[filter_scheduler]weight_classes``."""
    from nova.scheduler.weighers import cpu, disk, ram, server_groups

    return [cpu.CPUWeigher, disk.DiskWeigher, ram.RAMWeigher, server_groups.ServerGroupSoftAffinityWeigher,
            server_groups.ServerGroupSoftAntiAffinityWeigher]
