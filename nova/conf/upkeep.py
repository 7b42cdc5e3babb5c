"""``[DEFAULT]`` options of what nova-conductor does by itself, once servers have been in a state for long enough."""

from __future__ import annotations

from oslo_config import cfg

GROUP = "DEFAULT"

OPTS = [
    cfg.IntOpt("reclaim_instance_interval", default=0, min=0,
               help="Seconds for which a deleted server can be restored; then nova-conductor removes it. 0: a "
                    "delete is final at once. Read by nova-conductor."),
    cfg.IntOpt("resize_confirm_window", default=0, min=0,
               help="Seconds after which a resize or migration that nobody confirmed or reverted is confirmed. 0: "
                    "never. Read by nova-conductor."),
    cfg.IntOpt("rescue_timeout", default=0, min=0,
               help="Seconds after which a rescued server is unrescued. 0: never. Read by nova-conductor."),
    cfg.IntOpt("instance_build_timeout", default=0, min=0,
               help="Seconds after which a server that is still being built is given up: it turns to ERROR, and its "
                    "owner deletes it. 0: never. Read by nova-conductor."),
    cfg.IntOpt("shelved_offload_time", default=0, min=-1,
               help="Seconds for which a shelved server keeps its place on its host; then nova-conductor removes it "
                    "there, and only its image is left. 0: at once; -1: never."),
    cfg.IntOpt("shelved_poll_interval", default=3600, min=-1,
               help="Seconds between two looks for shelved servers whose time is over. 0: every 60 seconds; negative: "
                    "never."),
    cfg.IntOpt("instance_actions_retention", default=90, min=0,
               help="Days for which the actions of a server and its migrations stay listed (openstack server event list, "
                    "server migration list). Then nova-conductor removes them in small batches. Each server keeps its "
                    "newest instance_actions_kept, and actions that are not over. 0: all stay as long as their server. "
                    "Actions of a deleted server go with it, after deleted_retention."),
    cfg.IntOpt("instance_actions_kept", default=20, min=1,
               help="How many of its newest actions, and of its newest migrations, each server keeps, however old they "
                    "are. Read by nova-conductor."),
    cfg.IntOpt("heal_instance_info_cache_interval", default=60, min=-1,
               help="Seconds between two turns in which the interfaces of some servers are compared with what Neutron "
                    "has; each turn looks at 50 servers. 0 or negative: never. Read by nova-conductor."),
]
