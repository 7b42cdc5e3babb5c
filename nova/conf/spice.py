"""``[spice]``: graphical consoles over SPICE."""

from __future__ import annotations

from oslo_config import cfg

from nova.conf._section import Section
from nova.conf._urls import WEB

GROUP = "spice"

OPTS = [
    cfg.BoolOpt("enabled", default=False, help="Give guests a SPICE display."),
    cfg.BoolOpt("agent_enabled", default=True,
                help="Give guests a channel for the SPICE agent: shared clipboard, and a pointer in step with the "
                     "viewer's."),
    cfg.HostAddressOpt("server_listen", default="127.0.0.1",
                       help="Address on which QEMU listens for the console proxy. SPICE has no password here: only "
                            "the proxy may reach this address."),
    cfg.HostAddressOpt("server_proxyclient_address", default="127.0.0.1",
                       help="Address at which the console proxy reaches this host. 127.0.0.1 works only for a proxy "
                            "on this machine: others reject it."),
    cfg.URIOpt("html5proxy_base_url", schemes=WEB, default="http://127.0.0.1:6082/spice_auto.html",
               help="Read by nova-consoleauth: URL of nova-spicehtml5proxy for users' browsers."),
    cfg.HostAddressOpt("html5proxy_host", default="0.0.0.0", help="Address that nova-spicehtml5proxy listens on."),
    cfg.PortOpt("html5proxy_port", default=6082, help="Port that nova-spicehtml5proxy listens on."),
    cfg.URIOpt("spice_direct_proxy_base_url", default="http://127.0.0.1:13002/nova",
               help="Read by nova-consoleauth: URL to which users' native SPICE programs are sent (consoles of type "
                    "spice-direct): a separate proxy, which validates tokens through the API."),
    cfg.BoolOpt("require_secure", default=False,
                help="Accept only SPICE connections over TLS in QEMU. It must have certificates (qemu.conf)."),
    cfg.StrOpt("image_compression", choices=("auto_glz", "auto_lz", "quic", "glz", "lz", "off"),
               help="Lossless compression of images. Unset: QEMU's default."),
    cfg.StrOpt("jpeg_compression", choices=("auto", "never", "always"),
               help="Lossy compression of images on slow links. Unset: QEMU's default."),
    cfg.StrOpt("zlib_compression", choices=("auto", "never", "always"),
               help="Additional compression of images on slow links. Unset: QEMU's default."),
    cfg.BoolOpt("playback_compression", help="Whether audio is compressed. Unset: QEMU's default."),
    cfg.StrOpt("streaming_mode", choices=("filter", "all", "off"),
               help="Detection of video, which is sent as a stream. Unset: QEMU's default."),
]


class SpiceOptions(Section, frozen=True, kw_only=True):
    """Values of ``[spice]``."""

    enabled: bool
    agent_enabled: bool
    server_listen: str
    server_proxyclient_address: str
    html5proxy_base_url: str
    html5proxy_host: str
    html5proxy_port: int
    spice_direct_proxy_base_url: str
    require_secure: bool
    image_compression: str | None
    jpeg_compression: str | None
    zlib_compression: str | None
    playback_compression: bool | None
    streaming_mode: str | None
