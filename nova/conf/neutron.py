"""``[neutron]``: the network service next door. Here: how the metadata service trusts its proxy."""

from __future__ import annotations

from oslo_config import cfg

GROUP = "neutron"

OPTS = [
    cfg.BoolOpt("service_metadata_proxy", default=False,
                help="Guests' requests come through a signing proxy, which says which server asks. False: the source "
                     "address of the request says it."),
    cfg.StrOpt("metadata_proxy_shared_secret", default="", secret=True,
               help="What the proxy signs with. Required when service_metadata_proxy is set: whoever reaches the "
                    "metadata service could otherwise ask in any server's name."),
]
