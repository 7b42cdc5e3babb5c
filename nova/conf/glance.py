"""``[glance]``: the image service. Credentials (``auth_type``, ``auth_url``, ``username``, ...) and TLS options
(``cafile``, ``insecure``, ...) are keystoneauth's own and are read by ``nova.clients.session``."""

from __future__ import annotations

from oslo_config import cfg

from nova.conf._urls import WebUrl

GROUP = "glance"

OPTS = [
    cfg.ListOpt("api_servers", item_type=WebUrl(), help="Addresses of the image service, tried in turn, for example "
                                    "http://controller:9292. "
                                    "Unset: the identity service's catalog says where it is."),
    cfg.Opt("endpoint_override", type=WebUrl(), help="One address of the image service; stands above the catalog."),
    cfg.StrOpt("region_name", help="Region to look in, in the catalog."),
    cfg.StrOpt("service_type", default="image", help="Type to look for, in the catalog."),
    cfg.ListOpt("valid_interfaces", default=["internal", "public"], deprecated_name="interface",
                help="Interfaces to look for, the best one first."),
    cfg.IntOpt("num_retries", default=3, min=0,
               help="How often a call without an answer is made again, at the next address if there are several. A "
                    "broken download goes on where it broke off."),
    cfg.IntOpt("read_timeout", default=60, min=1,
               help="Seconds without a byte after which an answer is given up; a download may last longer than that."),
]
