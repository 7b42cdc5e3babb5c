"""``[monitoring]``: health checks and metrics of daemons."""

from __future__ import annotations

from oslo_config import cfg

from nova.conf._section import Section

GROUP = "monitoring"

#: Default port of each daemon: different for daemons that may run on one host.
PORTS = {
    "nova-api": 9871, "nova-api-os-compute": 9871, "nova-api-metadata": 9872, "nova-conductor": 9873,
    "nova-scheduler": 9874, "nova-compute": 9875, "nova-network": 9876, "nova-consoleauth": 9877, "nova-cert": 9878,
    "nova-novncproxy": 9879, "nova-spicehtml5proxy": 9880, "nova-serialproxy": 9881, "nova-xvpvncproxy": 9882,
    "nova-placement-api": 9883, "nova-imageproxy": 9884, "nova-objectstore": 9885, "nova-api-ec2": 9886}

OPTS = [
    cfg.BoolOpt("enabled", default=True,
                help="Serve /metrics, /health/live and /health/ready over HTTP. They name daemons, hosts and zones, "
                     "but no project, user or server."),
    cfg.HostAddressOpt("listen", default="127.0.0.1",
                       help="Address that they are served on. They need no authentication: keep it local, or on an "
                            "operators' network."),
    cfg.PortOpt("port", min=1,
                help="Port that they are served on. Unset: each daemon's own, from 9871 (nova-api) to 9886 "
                     "(nova-api-ec2), as listed on the page on monitoring. Set it in the daemon's own file if two "
                     "daemons of a kind run on one machine."),
]


class MonitoringOptions(Section, frozen=True, kw_only=True):
    """Values of ``[monitoring]``."""

    enabled: bool
    listen: str
    port: int | None
