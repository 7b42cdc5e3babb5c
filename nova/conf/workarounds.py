"""``[workarounds]``: ways around what goes wrong elsewhere."""

from __future__ import annotations

from oslo_config import cfg

GROUP = "workarounds"

OPTS = [
    cfg.BoolOpt("handle_virt_lifecycle_events", default=True,
                help="Tell the conductor at once of guests that stop or start by themselves. Off: only the report every "
                     "sync_power_state_interval tells of them. Read by nova-compute."),
]
