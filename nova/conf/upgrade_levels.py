"""``[upgrade_levels]``: pinned RPC contract versions, for manual rolling upgrades. Normally empty: daemons negotiate
them."""

from __future__ import annotations

from oslo_config import cfg

GROUP = "upgrade_levels"

OPTS = [cfg.StrOpt(topic.replace("-", "_"), help=f"Maximum version of the {topic} contract to use.")
        for topic in ("conductor", "conductor-host", "scheduler", "compute", "network", "cert",
                      "objectstore")]
