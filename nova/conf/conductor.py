"""``[conductor]``."""

from __future__ import annotations

from oslo_config import cfg

GROUP = "conductor"

OPTS = [
    cfg.IntOpt("workers", min=1, help="Processes; as many as there are CPUs when empty."),
    cfg.ListOpt("host_secret_key", default=[], secret=True,
                help="Keys that wrap hosts' secrets in the cell database: the same on all conductors, in "
                     "nova-conductor.conf, and nowhere else. Make one with: nova-manage host new-key. The first one "
                     "wraps, all of them open: to change it, put the new key behind the old key everywhere, then in "
                     "front of it. Then run 'nova-manage host wrap-secrets', and remove the old key. Bounded "
                     "mode needs it; in upstream mode, the first conductor generates one: see doc/security.rst."),
    cfg.IntOpt("lease_seconds", default=20, min=2,
               help="Seconds after which the operations of a conductor process that died are taken over by another; it "
                    "renews its lease four times in that time. Shorter is quicker, and trusts the database more."),
    cfg.IntOpt("pool_size", default=64, min=1, help="Calls a process works on at once; more wait in the queue."),
]
