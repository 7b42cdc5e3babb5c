"""``[DEFAULT]`` options of nova-objectstore for images that it makes of bundles (EC2's RegisterImage)."""

from __future__ import annotations

from oslo_config import cfg

GROUP = "DEFAULT"

OPTS = [
    cfg.StrOpt("image_decryption_dir", default="$state_path/decryption",
               help="Folder for bundles while nova-objectstore makes images of them. It needs room for the bundle and "
                    "its image, for each of image_decryption_workers. Upstream's default is /tmp, which is small "
                    "on many hosts, and shared with others."),
    cfg.StrOpt("image_decryption_jobs_dir", default="$state_path/decryption-jobs",
               help="Folder of the bundles that nova-objectstore still has to make images of. It must survive a "
                    "restart of the host."),
    cfg.IntOpt("image_decryption_workers", default=2, min=1,
               help="How many images nova-objectstore makes of bundles at once; others wait."),
    cfg.IntOpt("image_decryption_largest_gb", default=64, min=1,
               help="Size in GB (2**30 bytes) that an image of a bundle may have at most."),
]
