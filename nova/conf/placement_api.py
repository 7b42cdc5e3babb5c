"""``[placement_api]``: where nova-placement-api listens."""

from __future__ import annotations

from oslo_config import cfg

GROUP = "placement_api"

OPTS = [
    cfg.HostAddressOpt("listen", default="0.0.0.0", help="Address that Placement's API listens on."),
    cfg.PortOpt("listen_port", default=8778, help="Port of Placement's API."),
    cfg.IntOpt("workers", min=1, help="Worker processes of Placement's API. Unset: one a CPU."),
]
