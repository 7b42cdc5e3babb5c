"""``[placement_api]``: the listener of nova-placement-api."""

from __future__ import annotations

from oslo_config import cfg

from nova.conf._section import Section

GROUP = "placement_api"

OPTS = [
    cfg.HostAddressOpt("listen", default="0.0.0.0", help="Address that the Placement API listens on."),
    cfg.PortOpt("listen_port", default=8778, help="Port of the Placement API."),
    cfg.IntOpt("workers", min=1, help="Worker processes of the Placement API. Unset: one for each CPU."),
]


class PlacementApiOptions(Section, frozen=True, kw_only=True):
    """Values of ``[placement_api]``."""

    listen: str
    listen_port: int
    workers: int | None
