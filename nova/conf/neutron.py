"""``[neutron]``: the network service, and its trusted metadata proxy. Credentials (``auth_type``, ``auth_url``,
``username``, ...) and TLS options (``cafile``, ``insecure``, ...) are keystoneauth's own and are read by
``nova.clients.session``."""

from __future__ import annotations

from oslo_config import cfg

from nova.conf._section import Section
from nova.conf._urls import WebUrl

GROUP = "neutron"

OPTS = [
    cfg.BoolOpt("service_metadata_proxy", default=False,
                help="Identify guests by a signing proxy, through which their requests arrive. False: by the source "
                     "address of the request."),
    cfg.StrOpt("metadata_proxy_shared_secret", default="", secret=True,
               help="Secret with which the proxy signs requests. Required with service_metadata_proxy: otherwise any "
                    "client of the metadata service could pretend to be any server."),
    cfg.Opt("endpoint_override", type=WebUrl(), help="URL of the network service; takes precedence over the catalog."),
    cfg.StrOpt("region_name", help="Region of the network service in the catalog."),
    cfg.StrOpt("service_type", default="network", help="Service type in the catalog."),
    cfg.ListOpt("valid_interfaces", default=["internal", "public"], deprecated_name="interface",
                help="Interfaces in the catalog, in order of preference."),
    cfg.IntOpt("http_retries", default=3, min=0,
               help="Number of retries of a call without a response, if it may be repeated and time is left. All "
                    "attempts together take at most one and a half read_timeout, and within a request no longer than "
                    "its caller waits (four fifths of rpc_response_timeout)."),
    cfg.IntOpt("read_timeout", default=60, min=1,
               help="Seconds without a byte after which a call fails. Alias: timeout."),
    cfg.IntOpt("extension_sync_interval", default=600, min=0,
               help="Seconds for which the list of the service's extensions is cached."),
    cfg.StrOpt("default_floating_pool", default="nova",
               help="Name or id of the external network for floating IPs, if a request of the old API names none."),
    cfg.StrOpt("ovs_bridge", default="br-int",
               help="Open vSwitch integration bridge, if the service does not name one."),
]


class NeutronOptions(Section, frozen=True, kw_only=True):
    """Values of ``[neutron]``."""

    service_metadata_proxy: bool
    metadata_proxy_shared_secret: str
    endpoint_override: str | None
    region_name: str | None
    service_type: str
    valid_interfaces: list[str]
    http_retries: int
    read_timeout: int
    extension_sync_interval: int
    default_floating_pool: str
    ovs_bridge: str
