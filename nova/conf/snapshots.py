"""``[DEFAULT]`` options of images that are made of servers."""

from __future__ import annotations

from oslo_config import cfg

GROUP = "DEFAULT"

OPTS = [
    cfg.ListOpt("non_inheritable_image_properties", default=["cache_in_nova", "bittorrent"],
                help="Properties of a server's image that images made of the server don't get: what they say is true "
                     "of that very image's data only. Read by nova-conductor."),
]
