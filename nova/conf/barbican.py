"""``[barbican]``: the key manager next door. Credentials (``auth_type``, ``auth_url``, ``username``, ...) and TLS
options (``cafile``, ``insecure``, ...) are keystoneauth's own and are read by ``nova.clients.session``."""

from __future__ import annotations

from oslo_config import cfg

from nova.conf._urls import WebUrl

GROUP = "barbican"

OPTS = [
    cfg.Opt("barbican_endpoint", type=WebUrl(), help="Address of Barbican, for example http://controller:9311. Unset: it is looked "
                                         "for in the catalog, under key-manager."),
    cfg.StrOpt("barbican_region_name", help="Region to look in, in the catalog."),
    cfg.StrOpt("barbican_endpoint_type", default="public", choices=("public", "internal", "admin"),
               help="Which of its addresses in the catalog."),
]
