"""``[image_cache]``: images that were fetched once and serve every guest of the host."""

from __future__ import annotations

from oslo_config import cfg

GROUP = "image_cache"

OPTS = [
    cfg.IntOpt("manager_interval", default=2400, min=-1, deprecated_group="DEFAULT",
               deprecated_name="image_cache_manager_interval",
               help="Seconds between two looks for images that no guest uses. 0: every 60 seconds; -1: never."),
    cfg.StrOpt("subdirectory_name", default="_base", deprecated_group="DEFAULT",
               deprecated_name="image_cache_subdirectory_name",
               help="Name of the cache's directory below instances_path."),
    cfg.BoolOpt("remove_unused_base_images", default=True, deprecated_group="DEFAULT",
                deprecated_name="remove_unused_base_images", help="Whether unused images are removed at all."),
    cfg.IntOpt("remove_unused_original_minimum_age_seconds", default=86400, min=0, deprecated_group="DEFAULT",
               deprecated_name="remove_unused_original_minimum_age_seconds",
               help="An image stays this long after its last guest went, in case it is asked for again. Where there is "
                    "no space for another one it goes earlier, after three times manager_interval."),
    cfg.IntOpt("precache_concurrency", default=1, min=1,
               help="Hosts of an aggregate that nova-conductor asks at a time to fetch images beforehand (POST "
                    "/os-aggregates/ID/images). More is quicker, and more load on the image service."),
    cfg.IntOpt("convert_timeout", default=1800, min=1,
               help="Seconds that converting one image to raw may take before it is killed."),
]
