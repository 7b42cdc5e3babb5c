"""``[DEFAULT]`` options of nova-objectstore for images made from bundles (EC2's RegisterImage)."""

from __future__ import annotations

from oslo_config import cfg

GROUP = "DEFAULT"

OPTS = [
    cfg.StrOpt("image_decryption_dir", default="$state_path/decryption",
               help="Directory for bundles while nova-objectstore makes images from them. It needs space for the "
                    "bundle and its image, for each of image_decryption_workers. Upstream's default is /tmp, which "
                    "is small on many hosts, and shared with others."),
    cfg.StrOpt("image_decryption_jobs_dir", default="$state_path/decryption-jobs",
               help="Directory of pending bundle jobs of nova-objectstore. It must survive a restart of the host."),
    cfg.IntOpt("image_decryption_workers", default=2, min=1,
               help="Number of images that nova-objectstore makes from bundles at the same time; others wait."),
    cfg.IntOpt("image_decryption_largest_gb", default=64, min=1,
               help="Maximum size in GB (2**30 bytes) of an image made from a bundle."),
]
