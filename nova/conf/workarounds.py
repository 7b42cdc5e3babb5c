"""``[workarounds]``: workarounds for faults of other software."""

from __future__ import annotations

from oslo_config import cfg

from nova.conf._section import Section

GROUP = "workarounds"

OPTS = [
    cfg.BoolOpt("handle_virt_lifecycle_events", default=True,
                help="Report guests that stop or start by themselves to the conductor immediately. Off: only the "
                     "report every sync_power_state_interval includes them. Read by nova-compute."),
]


class WorkaroundsOptions(Section, frozen=True, kw_only=True):
    """Values of ``[workarounds]``."""

    handle_virt_lifecycle_events: bool
