"""``[DEFAULT]`` options of nova-compute's guests: how their disks and drives are made."""

from __future__ import annotations

from oslo_config import cfg

GROUP = "DEFAULT"

OPTS = [
    cfg.BoolOpt("use_cow_images", default=True,
                help="Guests' disks are thin overlays over the cached image. False copies the image for each guest: "
                     "slower to start, more disk, and a little faster to read and write."),
    cfg.BoolOpt("force_raw_images", default=True,
                help="Keep cached images as raw files, whatever their format was. False keeps qcow2 images as they "
                     "are: less disk, and a little slower for every guest. Other formats always become raw."),
    cfg.StrOpt("preallocate_images", default="none", choices=("none", "space"),
               help="space: take a disk's whole size from the file system when it is made, so that a guest never "
                    "finds the host full; none: take it as the guest writes."),
    cfg.StrOpt("default_ephemeral_format", choices=("ext2", "ext3", "ext4", "xfs", "vfat"),
               help="File system made on ephemeral disks. Unset: ext4, and vfat for Windows images (os_type=windows)."),
    cfg.StrOpt("config_drive_format", default="iso9660", choices=("iso9660", "vfat"),
               help="File system of config drives. iso9660 is a CD-ROM; vfat a small disk, which old guests on hosts "
                    "that migrate without shared storage needed."),
    cfg.IntOpt("config_drive_size_limit_mb", default=64, min=1,
               help="A config drive with more in it than this is refused."),
    cfg.StrOpt("pointer_model", default="usbtablet", choices=("usbtablet", "ps2mouse"),
               help="Pointer of guests that have a graphical console. usbtablet keeps it in step with the viewer's."),
]
