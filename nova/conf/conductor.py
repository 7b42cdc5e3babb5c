"""``[conductor]``."""

from __future__ import annotations

from oslo_config import cfg

GROUP = "conductor"

OPTS = [
    cfg.IntOpt("workers", min=1, help="Processes; as many as there are CPUs when empty."),
    cfg.IntOpt("pool_size", default=64, min=1, help="Calls a process works on at once; more wait in the queue."),
]
