"""``[conductor]``."""

from __future__ import annotations

from oslo_config import cfg

from nova.conf._section import Section

GROUP = "conductor"

OPTS = [
    cfg.IntOpt("workers", min=1, help="Number of worker processes. Unset: one for each CPU."),
    cfg.ListOpt("host_secret_key", default=[], secret=True,
                help="Keys that encrypt hosts' secrets in the cell database, and cells' URLs in the API database: the "
                     "same on all conductors, only in nova-conductor.conf. Generate one with: nova-manage host new-key. The first key encrypts, all "
                     "keys decrypt. To change it, add the new key behind the old key everywhere, then move it in "
                     "front. Then run 'nova-manage host wrap-secrets', and remove the old key. Bounded mode needs "
                     "it; in upstream mode, the first conductor generates one: see doc/security.rst."),
    cfg.IntOpt("lease_seconds", default=20, min=2,
               help="Seconds after which another conductor process takes over the operations of a process that died; "
                    "the lease is renewed four times in that time. A shorter lease speeds up the takeover, but "
                    "tolerates shorter database outages."),
    cfg.IntOpt("pool_size", default=64, min=1, help="Number of calls that a process works on at the same time; more "
                                                    "wait in the queue."),
]


class ConductorOptions(Section, frozen=True, kw_only=True):
    """Values of ``[conductor]``."""

    workers: int | None
    host_secret_key: list[str]
    lease_seconds: int
    pool_size: int
