"""``[DEFAULT]`` options of servers' volumes. For the volume service see ``[cinder]``."""

from __future__ import annotations

from oslo_config import cfg

GROUP = "DEFAULT"

OPTS = [
    cfg.IntOpt("reimage_timeout_per_gb", default=20, min=1,
               help="Seconds that Cinder may take for each GiB of an image that it writes over a server's root "
                    "volume (a rebuild from API version 2.93 on). A rebuild that takes longer fails, and the server "
                    "turns to ERROR. Read by nova-conductor."),
]
