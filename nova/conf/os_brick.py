"""``[os_brick]``: the library that connects hosts to volumes of iSCSI, Fibre Channel, NVMe-oF and others."""

from __future__ import annotations

from oslo_config import cfg

from nova.conf._section import Section

GROUP = "os_brick"

OPTS = [
    cfg.StrOpt("lock_path", default="$state_path/locks",
               help="Directory of os-brick's locks. If services of Cinder or Glance run on the same host, it must be "
                    "their path, too, and writable for them: give the directory their group, and the setgid bit. "
                    "nova-compute checks it at start."),
]


class OsBrickOptions(Section, frozen=True, kw_only=True):
    """Values of ``[os_brick]``."""

    lock_path: str
