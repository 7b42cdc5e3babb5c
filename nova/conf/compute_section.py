"""``[compute]``: more about how a host keeps its guests."""

from __future__ import annotations

from oslo_config import cfg

GROUP = "compute"

OPTS = [
    cfg.IntOpt("shutdown_retry_interval", default=10, min=1,
               help="Seconds after which a guest that was asked to shut down, and is still up, is asked again."),
]
