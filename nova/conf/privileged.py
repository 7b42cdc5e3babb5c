"""``[privileged]``: the helper for root's operations, used by nova-compute and nova-network when they are not root."""

from __future__ import annotations

from oslo_config import cfg

from nova.conf._section import Section

GROUP = "privileged"

OPTS = [
    cfg.StrOpt("socket", default="/run/nova/privileged.sock",
               help="Socket of nova-privileged, to which nova-compute and nova-network connect. Without such a "
                    "socket, they start the helper by sudo, nova-rootwrap and oslo.privsep "
                    "([nova_sys_admin]helper_command). As root they need neither."),
    cfg.StrOpt("user", default="nova",
               help="User of nova-compute and nova-network: only processes of this user, and of root, may call the "
                    "helper."),
]


class PrivilegedOptions(Section, frozen=True, kw_only=True):
    """Values of ``[privileged]``."""

    socket: str
    user: str
