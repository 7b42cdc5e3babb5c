"""MetricsFilter: hosts that report every metric of ``[metrics]weight_setting``.

It is also active when it is not enabled, if ``[metrics]required`` forbids the weigher to use a default.
"""

from __future__ import annotations

from nova.model.placement.ratios import ratios
from nova.model.scheduling.decisions import PlacementRequest
from nova.scheduler.filters import Filter
from nova.scheduler.plugin_options import PluginOptions
from nova.scheduler.views import HostView


def setting(options: PluginOptions | None) -> dict[str, float]:
    """Return metric -> ratio of ``[metrics]weight_setting``. Raises daemon.SchedulerBadRatio (see ``ratios``)."""
    group = options.metrics if options is not None else None
    return {} if group is None else ratios("[metrics]weight_setting", group.weight_setting)


def required(options: PluginOptions) -> bool:
    """True if the weigher must not use a default for missing metrics."""
    group = options.metrics
    return group is not None and bool(group.required and group.weight_multiplier and setting(options))


class MetricsFilter(Filter):
    reads = ()

    def __init__(self, options: PluginOptions | None = None) -> None:
        super().__init__(options)
        self._names = frozenset(setting(options))

    def wanted(self, request: PlacementRequest) -> bool:
        return bool(self._names)

    def refuses(self, host: HostView, request: PlacementRequest) -> str | None:
        missing = self._names - host.state.metrics.keys()
        return f"does not report {', '.join(sorted(missing))}" if missing else None
