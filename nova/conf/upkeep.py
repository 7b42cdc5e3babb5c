"""``[DEFAULT]`` options of nova-conductor's automatic actions on servers that stay in a state for long enough."""

from __future__ import annotations

from oslo_config import cfg

GROUP = "DEFAULT"

OPTS = [
    cfg.IntOpt("reclaim_instance_interval", default=0, min=0,
               help="Seconds for which a deleted server can be restored; then nova-conductor removes it. 0: a delete "
                    "is final immediately. Read by nova-conductor."),
    cfg.IntOpt("resize_confirm_window", default=0, min=0,
               help="Seconds after which an unconfirmed resize or migration is confirmed automatically. 0: never. "
                    "Read by nova-conductor."),
    cfg.IntOpt("rescue_timeout", default=0, min=0,
               help="Seconds after which a rescued server is unrescued. 0: never. Read by nova-conductor."),
    cfg.IntOpt("instance_build_timeout", default=0, min=0,
               help="Seconds after which a server that is still building is set to ERROR, for its owner to delete. "
                    "0: never. Read by nova-conductor."),
    cfg.IntOpt("shelved_offload_time", default=0, min=-1,
               help="Seconds for which a shelved server stays on its host; then nova-conductor removes it from "
                    "there, and only its image is left. 0: immediately; -1: never."),
    cfg.IntOpt("shelved_poll_interval", default=3600, min=-1,
               help="Seconds between two searches for shelved servers to offload. 0: every 60 seconds; negative: "
                    "never."),
    cfg.IntOpt("instance_actions_retention", default=90, min=0,
               help="Days for which a server's actions and migrations stay listed (openstack server event list, "
                    "server migration list). Then nova-conductor removes them in small batches. Each server keeps "
                    "its newest instance_actions_kept, and unfinished actions. 0: all stay as long as their server. "
                    "A deleted server's actions are removed with it, after deleted_retention."),
    cfg.IntOpt("instance_actions_kept", default=20, min=1,
               help="Number of newest actions, and of newest migrations, that each server keeps at any age. Read by "
                    "nova-conductor."),
    cfg.IntOpt("heal_instance_info_cache_interval", default=60, min=-1,
               help="Seconds between two runs that compare the interfaces of some servers with Neutron's data; each "
                    "run checks 50 servers. 0 or negative: never. Read by nova-conductor."),
]
