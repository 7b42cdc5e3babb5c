"""``[os_brick]``: the library by which hosts reach volumes of iSCSI, Fibre Channel, NVMe-oF and others."""

from __future__ import annotations

from oslo_config import cfg

GROUP = "os_brick"

OPTS = [
    cfg.StrOpt("lock_path", default="$state_path/locks",
               help="Where os-brick's locks are. If services of Cinder or Glance run on the same host, it must be the path "
                    "that they have. They must be able to write there: give the folder a group of theirs, and the setgid "
                    "bit. nova-compute looks at it when it starts."),
]
