"""``[vnc]``: graphical consoles of guests."""

from __future__ import annotations

from oslo_config import cfg

GROUP = "vnc"

OPTS = [
    cfg.BoolOpt("enabled", default=True, deprecated_group="DEFAULT", deprecated_name="vnc_enabled",
                help="Give guests a screen that can be watched over VNC."),
    cfg.HostAddressOpt("server_listen", default="127.0.0.1", deprecated_opts=[
        cfg.DeprecatedOpt("vncserver_listen", group="DEFAULT"), cfg.DeprecatedOpt("vncserver_listen", group="vnc")],
        help="Address on which QEMU listens for the console proxy. VNC has no password here: only the proxy may "
             "reach this address."),
    cfg.HostAddressOpt("server_proxyclient_address", default="127.0.0.1", deprecated_opts=[
        cfg.DeprecatedOpt("vncserver_proxyclient_address", group="DEFAULT"),
        cfg.DeprecatedOpt("vncserver_proxyclient_address", group="vnc")],
        help="Address at which the console proxy reaches this host."),
    cfg.URIOpt("novncproxy_base_url", default="http://127.0.0.1:6080/vnc_auto.html", deprecated_group="DEFAULT",
               deprecated_name="novncproxy_base_url", help="Where users' browsers find the console proxy."),
]
