"""``[glance]``: the image service. Credentials (``auth_type``, ``auth_url``, ``username``, ...) and TLS options
(``cafile``, ``insecure``, ...) are keystoneauth's own and are read by ``nova.clients.session``."""

from __future__ import annotations

from oslo_config import cfg

from nova.conf._section import Section
from nova.conf._urls import WebUrl

GROUP = "glance"

OPTS = [
    cfg.ListOpt("api_servers", item_type=WebUrl(), help="URLs of the image service, tried in turn, for example "
                                                        "http://controller:9292. Unset: the URL in the identity "
                                                        "service's catalog."),
    cfg.Opt("endpoint_override", type=WebUrl(), help="Single URL of the image service; takes precedence over the "
                                                     "catalog."),
    cfg.StrOpt("region_name", help="Region of the image service in the catalog."),
    cfg.StrOpt("service_type", default="image", help="Service type in the catalog."),
    cfg.ListOpt("valid_interfaces", default=["internal", "public"], deprecated_name="interface",
                help="Interfaces in the catalog, in order of preference."),
    cfg.IntOpt("num_retries", default=3, min=0,
               help="Number of retries of a call without a response, at the next URL if there are several. An "
                    "interrupted download resumes at the same position."),
    cfg.IntOpt("read_timeout", default=60, min=1,
               help="Seconds without a byte after which a call fails; a download may last longer."),
]


class GlanceOptions(Section, frozen=True, kw_only=True):
    """Values of ``[glance]``."""

    api_servers: list[str] | None
    endpoint_override: str | None
    region_name: str | None
    service_type: str
    valid_interfaces: list[str]
    num_retries: int
    read_timeout: int
