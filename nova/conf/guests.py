"""``[DEFAULT]`` options of nova-compute for guests' disks and drives."""

from __future__ import annotations

from oslo_config import cfg

GROUP = "DEFAULT"

OPTS = [
    cfg.BoolOpt("use_cow_images", default=True,
                help="Use thin overlays over the cached image as guests' disks. False copies the image for each "
                     "guest: slower to start, more disk, and a little faster to read and write."),
    cfg.BoolOpt("force_raw_images", default=True,
                help="Cache images as raw files, from any format. False keeps qcow2 images unchanged: less disk, and "
                     "a little slower for every guest. Other formats always become raw."),
    cfg.StrOpt("preallocate_images", default="none", choices=("none", "space"),
               help="space: allocate a disk's whole size on creation, so that a guest never meets a full host; none: "
                    "allocate it as the guest writes."),
    cfg.StrOpt("default_ephemeral_format", choices=("ext2", "ext3", "ext4", "xfs", "vfat"),
               help="File system of new ephemeral disks. Unset: ext4, and vfat for Windows images (os_type=windows)."),
    cfg.StrOpt("config_drive_format", default="iso9660", choices=("iso9660", "vfat"),
               help="Format of config drives. iso9660 is a CD-ROM; vfat a small disk, for old guests that migrated "
                    "without shared storage."),
    cfg.IntOpt("config_drive_size_limit_mb", default=64, min=1,
               help="Maximum size of a config drive in MB; larger ones are rejected."),
    cfg.StrOpt("pointer_model", default="usbtablet", choices=("usbtablet", "ps2mouse"),
               help="Pointer device of guests with a graphical console. usbtablet keeps it in step with the viewer's "
                    "pointer."),
]
