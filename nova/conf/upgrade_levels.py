"""``[upgrade_levels]``: pinned RPC contract versions, for manual rolling upgrades. Normally empty: daemons negotiate
them."""

from __future__ import annotations

from oslo_config import cfg

from nova.conf._section import Section

GROUP = "upgrade_levels"

OPTS = [cfg.StrOpt(topic.replace("-", "_"), help=f"Maximum version of the {topic} contract to use.")
        for topic in ("conductor", "conductor-host", "scheduler", "compute", "network", "cert",
                      "objectstore")]


class UpgradeLevelsOptions(Section, frozen=True, kw_only=True):
    """Values of ``[upgrade_levels]``."""

    conductor: str | None
    conductor_host: str | None
    scheduler: str | None
    compute: str | None
    network: str | None
    cert: str | None
    objectstore: str | None
