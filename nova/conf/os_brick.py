"""``[os_brick]``: the library by which hosts reach volumes of iSCSI, Fibre Channel, NVMe-oF and others."""

from __future__ import annotations

from oslo_config import cfg

GROUP = "os_brick"

OPTS = [
    cfg.StrOpt("lock_path", default="$state_path/locks",
               help="Where os-brick's locks are. On a host that runs services of Cinder or Glance as well, it must be "
                    "the path that they have, and they must be able to write there: give the folder a group of theirs, "
                    "and the setgid bit. Looked at when nova-compute starts."),
]
