"""``[spice]``: graphical consoles over SPICE."""

from __future__ import annotations

from oslo_config import cfg

from nova.conf._urls import WEB

GROUP = "spice"

OPTS = [
    cfg.BoolOpt("enabled", default=False, help="Give guests a screen that can be watched over SPICE."),
    cfg.BoolOpt("agent_enabled", default=True,
                help="Give guests a channel for SPICE's agent: clipboard and pointer in step with the viewer's."),
    cfg.HostAddressOpt("server_listen", default="127.0.0.1",
                       help="Address on which QEMU listens for the console proxy. SPICE has no password here: only the "
                            "proxy may reach this address."),
    cfg.HostAddressOpt("server_proxyclient_address", default="127.0.0.1",
                       help="Address at which the console proxy reaches this host. 127.0.0.1 serves only for a proxy on "
                            "this very machine: any other one refuses it."),
    cfg.URIOpt("html5proxy_base_url", schemes=WEB, default="http://127.0.0.1:6082/spice_auto.html",
               help="Read by nova-consoleauth: where users' browsers find nova-spicehtml5proxy."),
    cfg.HostAddressOpt("html5proxy_host", default="0.0.0.0", help="Address that nova-spicehtml5proxy listens on."),
    cfg.PortOpt("html5proxy_port", default=6082, help="Port that nova-spicehtml5proxy listens on."),
    cfg.URIOpt("spice_direct_proxy_base_url", default="http://127.0.0.1:13002/nova",
               help="Read by nova-consoleauth: where users' native SPICE programs are sent (consoles of type "
                    "spice-direct): a proxy of its own, which asks the API what a token opens."),
    cfg.BoolOpt("require_secure", default=False,
                help="QEMU takes SPICE connections over TLS only. It has to have certificates (qemu.conf)."),
    cfg.StrOpt("image_compression", choices=("auto_glz", "auto_lz", "quic", "glz", "lz", "off"),
               help="How pictures are compressed without loss. Unset: QEMU's way."),
    cfg.StrOpt("jpeg_compression", choices=("auto", "never", "always"),
               help="Whether pictures are compressed with loss on slow lines. Unset: QEMU's way."),
    cfg.StrOpt("zlib_compression", choices=("auto", "never", "always"),
               help="Whether pictures are compressed once more on slow lines. Unset: QEMU's way."),
    cfg.BoolOpt("playback_compression", help="Whether sound is compressed. Unset: QEMU's way."),
    cfg.StrOpt("streaming_mode", choices=("filter", "all", "off"),
               help="What is taken for a film and sent as one. Unset: QEMU's way."),
]
