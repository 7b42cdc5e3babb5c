"""Options that filters and weighers are created with."""

from __future__ import annotations

from nova.conf.filter_scheduler import FilterSchedulerOptions
from nova.conf.metrics import MetricsOptions
from nova.conf.scheduler import SchedulerOptions


class PluginOptions(FilterSchedulerOptions, frozen=True, kw_only=True):
    """Values of ``[filter_scheduler]``, and two more sections, for filters and weighers."""

    metrics: MetricsOptions | None = None
    scheduler: SchedulerOptions | None = None

    @classmethod
    def of_sections(cls, filter_scheduler: FilterSchedulerOptions, metrics: MetricsOptions | None = None,
                    scheduler: SchedulerOptions | None = None) -> PluginOptions:
        """Return the values of these sections."""
        own = {name: getattr(filter_scheduler, name) for name in FilterSchedulerOptions.__struct_fields__}
        return cls(**own, metrics=metrics, scheduler=scheduler)
