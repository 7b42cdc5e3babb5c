"""``[oslo_limit]``: limits stored in Keystone (``[quota]driver = nova.quota.UnifiedLimitsDriver``).

Credentials (``auth_type``, ``auth_url``, ``username``, ...) and TLS options are keystoneauth's own and are read by
``nova.clients.session``; they need to read limits of every project (in Keystone's defaults: reader on system all).
"""

from __future__ import annotations

from oslo_config import cfg

from nova.conf._section import Section

GROUP = "oslo_limit"

OPTS = [
    cfg.StrOpt("endpoint_id", help="Id of the compute endpoint in Keystone: limits are registered for its service "
                                   "and region. Unset: it is found by the options below."),
    cfg.StrOpt("endpoint_service_type", default="compute", help="Type of the service for which limits are registered."),
    cfg.StrOpt("endpoint_service_name", help="Name of the service, if several have that type."),
    cfg.StrOpt("endpoint_interface", default="public", help="Interface of the service's endpoint."),
    cfg.StrOpt("endpoint_region_name", help="Region of the service's endpoint. Unset: the only one's."),
    cfg.IntOpt("read_timeout", default=10, min=1,
               help="Seconds without a response after which a request that needs a limit fails with 503."),
]


class OsloLimitOptions(Section, frozen=True, kw_only=True):
    """Values of ``[oslo_limit]``."""

    endpoint_id: str | None
    endpoint_service_type: str
    endpoint_service_name: str | None
    endpoint_interface: str
    endpoint_region_name: str | None
    read_timeout: int
