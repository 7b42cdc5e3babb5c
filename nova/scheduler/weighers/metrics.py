"""MetricsWeigher: the sum of a host's metrics, each times its ratio of ``[metrics]weight_setting``.

A host that does not report all of them is refused if ``[metrics]required`` is set (see MetricsFilter); otherwise it
gets ``weight_of_unavailable``.
"""

from __future__ import annotations

from nova.model.scheduling.decisions import PlacementRequest
from nova.scheduler.filters.metrics import setting
from nova.scheduler.plugin_options import PluginOptions
from nova.scheduler.views import HostView
from nova.scheduler.weighers import Weigher


class MetricsWeigher(Weigher):
    multiplier_option = "metrics_weight_multiplier"  # in aggregate metadata; the option is [metrics]weight_multiplier
    reads = ()

    def __init__(self, options: PluginOptions | None = None) -> None:
        super().__init__(options)
        self._ratios = setting(options)
        group = options.metrics if options is not None else None
        if self._ratios and group is not None:
            self.multiplier, self._unavailable = group.weight_multiplier, group.weight_of_unavailable

    def neutral(self, request: PlacementRequest) -> bool:
        return not self._ratios

    def weigh(self, host: HostView, request: PlacementRequest) -> float:
        metrics = host.state.metrics
        if not metrics.keys() >= self._ratios.keys():
            return self._unavailable
        return sum(metrics[name] * ratio for name, ratio in self._ratios.items())
