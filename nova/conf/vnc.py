"""``[vnc]``: graphical consoles of guests."""

from __future__ import annotations

from oslo_config import cfg

from nova.conf._urls import WEB

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
        help="Address at which the console proxy reaches this host. 127.0.0.1 serves only for a proxy on "
             "this very machine: any other one refuses it."),
    cfg.URIOpt("novncproxy_base_url", schemes=WEB, default="http://127.0.0.1:6080/vnc_auto.html", deprecated_group="DEFAULT",
               deprecated_name="novncproxy_base_url", help="Where users' browsers find the console proxy. Read by "
               "nova-consoleauth: it is not read on compute hosts."),
    cfg.StrOpt("novncproxy_host", default="0.0.0.0", deprecated_group="DEFAULT", deprecated_name="novncproxy_host",
               help="Address that nova-novncproxy listens on."),
    cfg.PortOpt("novncproxy_port", default=6080, deprecated_group="DEFAULT", deprecated_name="novncproxy_port",
                help="Port that nova-novncproxy listens on."),
    cfg.URIOpt("xvpvncproxy_base_url", schemes=WEB, deprecated_group="DEFAULT", deprecated_name="xvpvncproxy_base_url",
               help="Read by nova-consoleauth: where the OpenStack-specific Java viewer finds nova-xvpvncproxy, mostly "
                    "http://ADDRESS:6081/console. Unset: consoles of type xvpvnc are refused, as new releases do."),
    cfg.StrOpt("xvpvncproxy_host", default="0.0.0.0", deprecated_group="DEFAULT", deprecated_name="xvpvncproxy_host",
               help="Address that nova-xvpvncproxy listens on."),
    cfg.PortOpt("xvpvncproxy_port", default=6081, deprecated_group="DEFAULT", deprecated_name="xvpvncproxy_port",
                help="Port that nova-xvpvncproxy listens on."),
    cfg.ListOpt("auth_schemes", default=["none"], item_type=cfg.types.String(choices=("none", "vencrypt")),
                help="How nova-novncproxy may make itself known to QEMU, the preferred first: vencrypt (TLS, with a "
                     "certificate on either side), none. Where none is listed, who reaches the port reaches the guest."),
    cfg.StrOpt("vencrypt_client_key", help="The proxy's private key for vencrypt, a PEM file."),
    cfg.StrOpt("vencrypt_client_cert", help="The proxy's certificate for vencrypt, a PEM file."),
    cfg.StrOpt("vencrypt_ca_certs", help="The authorities QEMU's certificate must come from, a PEM file. Needed by "
                                         "vencrypt."),
]
