"""``[conductor]``."""

from __future__ import annotations

from oslo_config import cfg

GROUP = "conductor"

OPTS = [
    cfg.IntOpt("workers", min=1, help="Processes; as many as there are CPUs when empty."),
    cfg.IntOpt("lease_seconds", default=20, min=2,
               help="Seconds after which the operations of a conductor process that died are taken over by another; it "
                    "renews its lease four times in that time. Shorter is quicker, and trusts the database more."),
    cfg.IntOpt("pool_size", default=64, min=1, help="Calls a process works on at once; more wait in the queue."),
]
