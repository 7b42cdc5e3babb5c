"""Base class of operators' own weighers in OpenStack's form; nova's are in :mod:`nova.scheduler.weighers`."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from nova.model.scheduling.decisions import PlacementRequest
from nova.scheduler.plugin_objects import PluginHostState, RequestSpec
from nova.scheduler.views import HostView
from nova.scheduler.weighers import Weigher, all_weighers


@dataclasses.dataclass
class WeighedHost:
    """A host and its weight."""

    obj: PluginHostState
    weight: float = 0.0


class BaseHostWeigher(Weigher):
    """Base class: a subclass has ``_weigh_object``. Weights are scaled to 0..1 between the lowest and the highest
    weight, or between ``minval`` and ``maxval`` if these are set, and then multiplied."""

    own_multipliers = True
    minval: float | None = None
    maxval: float | None = None

    def __init__(self) -> None:
        super().__init__()

    def weight_multiplier(self, host_state: PluginHostState) -> float:
        """Return the weigher's multiplier for a host."""
        return 1.0

    def _weigh_object(self, host_state: PluginHostState, weight_properties: RequestSpec) -> float:
        """Return the weight of a host; more is better."""
        raise NotImplementedError

    def weigh_objects(self, weighed_obj_list: Sequence[WeighedHost], weight_properties: RequestSpec) -> list[float]:
        """Return a weight for each host."""
        return [self._weigh_object(one.obj, weight_properties) for one in weighed_obj_list]

    def weigh_all(self, hosts: Sequence[HostView], request: PlacementRequest) -> list[float]:
        """Return a weight for each host, as the scheduler calls all weighers."""
        return self.weigh_objects([WeighedHost(PluginHostState.of(host)) for host in hosts], RequestSpec.of(request))

    def bounds(self, values: Sequence[float]) -> tuple[float, float]:
        """Return the weights that are scaled to 0 and 1."""
        low, high = super().bounds(values)
        return low if self.minval is None else self.minval, high if self.maxval is None else self.maxval

    def multiplier_of(self, host: HostView) -> float:
        """Return the multiplier for a host, as the scheduler calls all weighers."""
        return self.weight_multiplier(PluginHostState.of(host))


__all__ = ["BaseHostWeigher", "WeighedHost", "all_weighers"]
