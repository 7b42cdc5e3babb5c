"""``[privileged]``: how nova-compute and nova-network have done what root alone may, where they are not root."""

from __future__ import annotations

from oslo_config import cfg

GROUP = "privileged"

OPTS = [
    cfg.StrOpt("socket", default="/run/nova/privileged.sock",
               help="Where nova-privileged listens, and where nova-compute and nova-network look for it. Where there is "
                    "no such socket, they start the helper by sudo, nova-rootwrap and oslo.privsep "
                    "([nova_sys_admin]helper_command). As root they need neither."),
    cfg.StrOpt("user", default="nova",
               help="The user of nova-compute and nova-network: processes of this user, and of root, may ask the helper."),
]
