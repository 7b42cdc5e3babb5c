"""``[image_proxy]``: how images reach compute hosts, and snapshots leave them."""

from __future__ import annotations

from oslo_config import cfg

from nova.conf._urls import WebUrl

GROUP = "image_proxy"

OPTS = [
    cfg.ListOpt("key", default=[], secret=True,
                help="Keys that seal image tickets: of nova-conductor and nova-imageproxy, the same on all of them, and "
                     "never on a compute host. Make one with: openssl rand -base64 32 | tr '+/' '-_'. The first one "
                     "seals, all of them open: to change it, put the new key behind the old key everywhere, then in "
                     "front of it. Remove the old key once ticket_lifetime is over. Bounded mode needs "
                     "it; in upstream mode there are no tickets: see doc/security.rst."),
    cfg.HostAddressOpt("listen", default="0.0.0.0", help="Address that nova-imageproxy listens on."),
    cfg.PortOpt("listen_port", default=9293, help="Port of nova-imageproxy."),
    cfg.IntOpt("workers", min=1, help="Worker processes of nova-imageproxy. Unset: one a CPU."),
    cfg.ListOpt("servers", item_type=WebUrl(), default=[], sample_default="http://$my_ip:9293",
                help="Read by nova-conductor: addresses at which compute hosts reach the image proxies, tried in "
                     "turn, for example https://controller:9293. Unset: a proxy on the conductor's own machine, at "
                     "my_ip and "
                     "listen_port."),
    cfg.IntOpt("ticket_lifetime", default=3600, min=60,
               help="Seconds for which a ticket is good. A stream that has begun goes on past them; a host that waits "
                    "longer for its turn is ordered again. It must cover the difference between the clocks of "
                    "conductors and proxies."),
    cfg.IntOpt("transfers", default=32, min=1,
               help="Images that a worker of nova-imageproxy carries at a time, at about 4 MiB of memory each. Hosts "
                    "beyond that wait for their turn."),
    cfg.IntOpt("client_timeout", default=60, min=1,
               help="Seconds that a host may take for the next MiB of an image, or for its next bytes of a snapshot; "
                    "then nova-imageproxy hangs up. A host goes on with an image where it was."),
    cfg.IntOpt("longest_transfer", default=21600, min=60,
               help="Seconds after which nova-imageproxy hangs up in any case, so that none can hold a place for ever."),
    cfg.StrOpt("cafile", help="Read by nova-compute: file of the authorities that image proxies' certificates come from. "
                              "Unset: the authorities of Python's requests."),
    cfg.BoolOpt("insecure", default=False,
                help="Read by nova-compute: take any certificate of an image proxy. Images are checked by their "
                     "hash anyway; snapshots may be read on the network."),
    cfg.IntOpt("num_retries", default=3, min=0,
               help="Read by nova-compute: how often a request without an answer is made again, at the next address "
                    "if there are several. A broken download goes on where it broke off."),
    cfg.IntOpt("read_timeout", default=60, min=1,
               help="Read by nova-compute: seconds without a byte after which an answer is given up."),
]
