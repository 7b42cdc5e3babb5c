"""``[keystone]``: the identity service, used to verify that a project exists before data is stored for it.

Credentials (``auth_type``, ``auth_url``, ``username``, ...) and TLS options are keystoneauth's own and are read by
``nova.clients.session``; they need to show projects (in Keystone's defaults: reader on system all, or admin).
"""

from __future__ import annotations

from oslo_config import cfg

GROUP = "keystone"

OPTS = [
    cfg.StrOpt("region_name", help="Region of Keystone's endpoint in the catalog. Unset: any."),
]
