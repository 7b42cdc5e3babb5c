"""``[image_cache]``: the cache of images on each host, shared by its guests."""

from __future__ import annotations

from oslo_config import cfg

from nova.conf._section import Section

GROUP = "image_cache"

OPTS = [
    cfg.IntOpt("manager_interval", default=2400, min=-1, deprecated_group="DEFAULT",
               deprecated_name="image_cache_manager_interval",
               help="Seconds between two searches for unused images. 0: every 60 seconds; -1: never."),
    cfg.StrOpt("subdirectory_name", default="_base", deprecated_group="DEFAULT",
               deprecated_name="image_cache_subdirectory_name",
               help="Name of the cache directory below instances_path."),
    cfg.BoolOpt("remove_unused_base_images", default=True, deprecated_group="DEFAULT",
                deprecated_name="remove_unused_base_images", help="Whether unused images are removed at all."),
    cfg.IntOpt("remove_unused_original_minimum_age_seconds", default=86400, min=0, deprecated_group="DEFAULT",
               deprecated_name="remove_unused_original_minimum_age_seconds",
               help="Seconds for which an image stays after its last guest was removed, in case it is requested "
                    "again. If space is short it is removed earlier, after three times manager_interval."),
    cfg.IntOpt("precache_concurrency", default=1, min=1,
               help="Number of an aggregate's hosts on which nova-conductor caches images at the same time (POST "
                    "/os-aggregates/ID/images). More is faster, and more load on the image service."),
    cfg.IntOpt("convert_timeout", default=1800, min=1,
               help="Seconds allowed for the conversion of one image to raw; then it is killed."),
]


class ImageCacheOptions(Section, frozen=True, kw_only=True):
    """Values of ``[image_cache]``."""

    manager_interval: int
    subdirectory_name: str
    remove_unused_base_images: bool
    remove_unused_original_minimum_age_seconds: int
    precache_concurrency: int
    convert_timeout: int
