"""``[upgrade_levels]``: pins of RPC contract versions, for rolling upgrades by hand. Normally empty: daemons learn it."""

from __future__ import annotations

from oslo_config import cfg

GROUP = "upgrade_levels"

OPTS = [cfg.StrOpt(topic.replace("-", "_"), help=f"The newest version of the {topic} contract to speak.")
        for topic in ("conductor", "conductor-host", "scheduler", "compute", "network", "cert",
                      "objectstore")]
