"""``[scheduler]``: how servers find their hosts."""

from __future__ import annotations

from oslo_config import cfg

GROUP = "scheduler"

OPTS = [
    cfg.IntOpt("workers", min=0,
               help="How many nova-scheduler processes to run. Each knows all hosts (about 2 KB a host) and answers "
                    "requests of its own. Unset: as many as there are CPUs."),
    cfg.IntOpt("max_attempts", default=3, min=1,
               help="How many hosts are tried for a server before it ends in ERROR: the scheduler's choice, then "
                    "others. 1: no second try."),
    cfg.IntOpt("host_state_sweep_interval", default=60, min=1,
               help="Seconds between two questions to the conductor for what this scheduler does not know of the hosts "
                    "yet. Changes are told as they happen; this repairs what got lost on the way."),
]
