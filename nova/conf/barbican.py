"""``[barbican]``: the key manager service. Credentials (``auth_type``, ``auth_url``, ``username``, ...) and TLS options
(``cafile``, ``insecure``, ...) are keystoneauth's own and are read by ``nova.clients.session``."""

from __future__ import annotations

from oslo_config import cfg

from nova.conf._section import Section
from nova.conf._urls import WebUrl

GROUP = "barbican"

OPTS = [
    cfg.Opt("barbican_endpoint", type=WebUrl(), help="URL of Barbican, for example http://controller:9311. Unset: "
                                                     "the catalog's entry of type key-manager."),
    cfg.StrOpt("barbican_region_name", help="Region of Barbican in the catalog."),
    cfg.StrOpt("barbican_endpoint_type", default="public", choices=("public", "internal", "admin"),
               help="Interface of Barbican in the catalog."),
]


class BarbicanOptions(Section, frozen=True, kw_only=True):
    """Values of ``[barbican]``."""

    barbican_endpoint: str | None
    barbican_region_name: str | None
    barbican_endpoint_type: str
