"""``[mks]``: consoles of VMware guests."""

from __future__ import annotations

from oslo_config import cfg

from nova.conf._section import Section
from nova.conf._urls import WEB

GROUP = "mks"

OPTS = [
    cfg.BoolOpt("enabled", default=False, help="Offer consoles of type webmks, if the hypervisor supports them."),
    cfg.URIOpt("mksproxy_base_url", schemes=WEB, default="http://127.0.0.1:6090/",
               help="Read by nova-consoleauth: URL of the MKS proxy for users' browsers."),
]


class MksOptions(Section, frozen=True, kw_only=True):
    """Values of ``[mks]``."""

    enabled: bool
    mksproxy_base_url: str
