"""``[keystone]``: the identity service, used to verify that a project exists before data is stored for it.

Credentials (``auth_type``, ``auth_url``, ``username``, ...) and TLS options are keystoneauth's own and are read by
``nova.clients.session``; they need to show projects (in Keystone's defaults: reader on system all, or admin).
"""

from __future__ import annotations

from oslo_config import cfg

from nova.conf._section import Section

GROUP = "keystone"

OPTS = [
    cfg.StrOpt("region_name", help="Region of Keystone's endpoint in the catalog. Unset: any."),
]


class KeystoneOptions(Section, frozen=True, kw_only=True):
    """Values of ``[keystone]``."""

    region_name: str | None
