"""``[neutron]``: the network service next door, and how the metadata service trusts its proxy. Credentials
(``auth_type``, ``auth_url``, ``username``, ...) and TLS options (``cafile``, ``insecure``, ...) are keystoneauth's own
and are read by ``nova.clients.session``."""

from __future__ import annotations

from oslo_config import cfg

from nova.conf._urls import WebUrl

GROUP = "neutron"

OPTS = [
    cfg.BoolOpt("service_metadata_proxy", default=False,
                help="Guests' requests come through a signing proxy, which says which server asks. False: the source "
                     "address of the request says it."),
    cfg.StrOpt("metadata_proxy_shared_secret", default="", secret=True,
               help="What the proxy signs with. Required when service_metadata_proxy is set: whoever reaches the "
                    "metadata service could otherwise ask in any server's name."),
    cfg.Opt("endpoint_override", type=WebUrl(), help="Address of the network service; stands above the catalog."),
    cfg.StrOpt("region_name", help="Region to look in, in the catalog."),
    cfg.StrOpt("service_type", default="network", help="Type to look for, in the catalog."),
    cfg.ListOpt("valid_interfaces", default=["internal", "public"], deprecated_name="interface",
                help="Interfaces to look for, the best one first."),
    cfg.IntOpt("http_retries", default=3, min=0,
               help="How often a call without an answer is made again, if it may be repeated and while there is "
                    "time. All attempts together take one and a half read_timeout at most, and within a request no "
                    "longer than its caller waits (four fifths of rpc_response_timeout)."),
    cfg.IntOpt("read_timeout", default=60, min=1,
               help="Seconds without a byte after which an answer is given up. Another name of it: timeout."),
    cfg.IntOpt("extension_sync_interval", default=600, min=0,
               help="Seconds for which the list of the service's extensions is believed."),
    cfg.StrOpt("default_floating_pool", default="nova",
               help="Name or id of the external network that floating addresses come from, where a request of the old "
                    "API names none."),
    cfg.StrOpt("ovs_bridge", default="br-int",
               help="Open vSwitch's integration bridge, where the service does not say which."),
]
