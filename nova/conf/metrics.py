"""``[metrics]``: how much what hosts measure of themselves counts in where servers go."""

from __future__ import annotations

from oslo_config import cfg

GROUP = "metrics"

OPTS = [
    cfg.FloatOpt("weight_multiplier", default=1.0,
                 help="How much the metrics count beside the other weighers. Aggregate metadata "
                      "metrics_weight_multiplier overrides it for the aggregate's hosts; the lowest wins."),
    cfg.ListOpt("weight_setting", default=[],
                help="Which metrics count, and how much: NAME=RATIO. A host's value is the sum over them of metric times "
                     "ratio. Empty: none. Hosts report what compute_monitors says. An example is cpu.percent=-1.0."),
    cfg.BoolOpt("required", default=True,
                help="Whether a host must report all of these metrics. A host that does not then gets no servers, "
                     "as with MetricsFilter. Otherwise it has weight_of_unavailable in their place."),
    cfg.FloatOpt("weight_of_unavailable", default=-10000.0,
                 help="The value of a host that does not report all of these metrics, where it need not."),
]
