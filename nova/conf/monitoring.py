"""``[monitoring]``: where a daemon shows its health and its metrics."""

from __future__ import annotations

from oslo_config import cfg

GROUP = "monitoring"

#: A daemon's port where none is set: those that may run on one host have different ones.
PORTS = {
    "nova-api": 9871, "nova-api-os-compute": 9871, "nova-api-metadata": 9872, "nova-conductor": 9873,
    "nova-scheduler": 9874, "nova-compute": 9875, "nova-network": 9876, "nova-consoleauth": 9877, "nova-cert": 9878,
    "nova-novncproxy": 9879, "nova-spicehtml5proxy": 9880, "nova-serialproxy": 9881, "nova-xvpvncproxy": 9882,
    "nova-placement-api": 9883, "nova-imageproxy": 9884, "nova-objectstore": 9885, "nova-api-ec2": 9886}

OPTS = [
    cfg.BoolOpt("enabled", default=True,
                help="Serve /metrics, /health/live and /health/ready over HTTP. The answers name daemons, hosts and "
                     "zones, and no project, user or server."),
    cfg.HostAddressOpt("listen", default="127.0.0.1",
                       help="The address to serve them on. Whoever reaches it can read them: keep it on the machine, or "
                            "on a network of the operators'."),
    cfg.PortOpt("port", min=1,
                help="The port. Each daemon has its own where this is not set, from 9871 (nova-api) to 9886 "
                     "(nova-api-ec2), as the page on monitoring lists. Set it, in a file of that daemon's own, where "
                     "two daemons of a kind run on one machine."),
]
