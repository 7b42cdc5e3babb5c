"""``[DEFAULT]`` options of images made from servers."""

from __future__ import annotations

from oslo_config import cfg

GROUP = "DEFAULT"

OPTS = [
    cfg.ListOpt("non_inheritable_image_properties", default=["cache_in_nova", "bittorrent"],
                help="Properties of a server's image that images made from the server do not inherit: they describe "
                     "only the original image's data. Read by nova-conductor."),
]
