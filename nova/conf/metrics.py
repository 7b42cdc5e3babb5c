"""``[metrics]``: weights of hosts' metrics for the scheduler."""

from __future__ import annotations

from oslo_config import cfg

from nova.conf._section import Section

GROUP = "metrics"

OPTS = [
    cfg.FloatOpt("weight_multiplier", default=1.0,
                 help="Weight of the metrics relative to the other weighers. Aggregate metadata "
                      "metrics_weight_multiplier overrides it for the aggregate's hosts; the lowest wins."),
    cfg.ListOpt("weight_setting", default=[],
                help="Metrics with their ratios: NAME=RATIO. A host's value is the sum of metric times ratio. Empty: "
                     "none. Hosts report the metrics of compute_monitors. An example is cpu.percent=-1.0."),
    cfg.BoolOpt("required", default=True,
                help="Whether a host must report all of these metrics. If so, a host that does not gets no servers, "
                     "as with MetricsFilter. Otherwise it gets weight_of_unavailable."),
    cfg.FloatOpt("weight_of_unavailable", default=-10000.0,
                 help="Value of a host that does not report all of these metrics, if required is off."),
]


class MetricsOptions(Section, frozen=True, kw_only=True):
    """Values of ``[metrics]``."""

    weight_multiplier: float
    weight_setting: list[str]
    required: bool
    weight_of_unavailable: float
