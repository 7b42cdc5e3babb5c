"""``[image_proxy]``: transfer of images to compute hosts, and of snapshots from them."""

from __future__ import annotations

from oslo_config import cfg

from nova.conf._section import Section
from nova.conf._urls import WebUrl

GROUP = "image_proxy"

OPTS = [
    cfg.ListOpt("key", default=[], secret=True,
                help="Keys that encrypt image tickets: the same on all hosts of nova-conductor and nova-imageproxy, "
                     "and never on a compute host. Generate one with: openssl rand -base64 32 | tr '+/' '-_'. The "
                     "first key encrypts, all keys decrypt. To change it, add the new key behind the old key "
                     "everywhere, then move it in front. Remove the old key after ticket_lifetime. Bounded mode "
                     "needs it; upstream mode has no tickets: see doc/security.rst."),
    cfg.HostAddressOpt("listen", default="0.0.0.0", help="Address that nova-imageproxy listens on."),
    cfg.PortOpt("listen_port", default=9293, help="Port of nova-imageproxy."),
    cfg.IntOpt("workers", min=1, help="Worker processes of nova-imageproxy. Unset: one for each CPU."),
    cfg.ListOpt("servers", item_type=WebUrl(), default=[], sample_default="http://$my_ip:9293",
                help="Read by nova-conductor: URLs at which compute hosts reach the image proxies, tried in turn, "
                     "for example https://controller:9293. Unset: a proxy on the conductor's own machine, at my_ip "
                     "and listen_port."),
    cfg.IntOpt("ticket_lifetime", default=3600, min=60,
               help="Seconds for which a ticket is valid. A transfer that has begun continues after that; a host "
                    "that waits longer gets a new order. It must exceed the clock difference between conductors and "
                    "proxies."),
    cfg.IntOpt("transfers", default=32, min=1,
               help="Number of images that a worker of nova-imageproxy transfers at the same time, with about 4 MiB "
                    "of memory each. Further hosts wait."),
    cfg.IntOpt("client_timeout", default=60, min=1,
               help="Seconds to wait for a host to accept the next MiB of an image, or to send the next bytes of a "
                    "snapshot; then nova-imageproxy closes the connection. The host resumes an image at the same "
                    "position."),
    cfg.IntOpt("longest_transfer", default=21600, min=60,
               help="Seconds after which nova-imageproxy closes any connection, so that no host occupies a slot for "
                    "ever."),
    cfg.StrOpt("cafile", help="Read by nova-compute: file of the CA certificates for image proxies. Unset: those of "
                              "Python's requests."),
    cfg.BoolOpt("insecure", default=False,
                help="Read by nova-compute: do not verify the certificates of image proxies. Images are verified by "
                     "their hash anyway; snapshots may be read on the network."),
    cfg.IntOpt("num_retries", default=3, min=0,
               help="Read by nova-compute: number of retries of a request without a response, at the next URL if "
                    "there are several. An interrupted download resumes at the same position."),
    cfg.IntOpt("read_timeout", default=60, min=1,
               help="Read by nova-compute: seconds without a byte after which a request fails."),
]


class ImageProxyOptions(Section, frozen=True, kw_only=True):
    """Values of ``[image_proxy]``."""

    key: list[str]
    listen: str
    listen_port: int
    workers: int | None
    servers: list[str]
    ticket_lifetime: int
    transfers: int
    client_timeout: int
    longest_transfer: int
    cafile: str | None
    insecure: bool
    num_retries: int
    read_timeout: int
