"""``[vnc]``: graphical consoles of guests."""

from __future__ import annotations

from oslo_config import cfg

from nova.conf._section import Section
from nova.conf._urls import WEB

GROUP = "vnc"

OPTS = [
    cfg.BoolOpt("enabled", default=True, deprecated_group="DEFAULT", deprecated_name="vnc_enabled",
                help="Give guests a VNC display."),
    cfg.HostAddressOpt("server_listen", default="127.0.0.1", deprecated_opts=[
        cfg.DeprecatedOpt("vncserver_listen", group="DEFAULT"), cfg.DeprecatedOpt("vncserver_listen", group="vnc")],
        help="Address on which QEMU listens for the console proxy. VNC has no password here: only the proxy may "
             "reach this address."),
    cfg.HostAddressOpt("server_proxyclient_address", default="127.0.0.1", deprecated_opts=[
        cfg.DeprecatedOpt("vncserver_proxyclient_address", group="DEFAULT"),
        cfg.DeprecatedOpt("vncserver_proxyclient_address", group="vnc")],
        help="Address at which the console proxy reaches this host. 127.0.0.1 works only for a proxy on this "
             "machine: others reject it."),
    cfg.URIOpt("novncproxy_base_url", schemes=WEB, default="http://127.0.0.1:6080/vnc_auto.html", deprecated_group="DEFAULT",
               deprecated_name="novncproxy_base_url",
               help="URL of the console proxy for users' browsers. Read by nova-consoleauth, not on compute hosts."),
    cfg.StrOpt("novncproxy_host", default="0.0.0.0", deprecated_group="DEFAULT", deprecated_name="novncproxy_host",
               help="Address that nova-novncproxy listens on."),
    cfg.PortOpt("novncproxy_port", default=6080, deprecated_group="DEFAULT", deprecated_name="novncproxy_port",
                help="Port that nova-novncproxy listens on."),
    cfg.URIOpt("xvpvncproxy_base_url", schemes=WEB, deprecated_group="DEFAULT", deprecated_name="xvpvncproxy_base_url",
               help="Read by nova-consoleauth: URL of nova-xvpvncproxy for the OpenStack-specific Java viewer, "
                    "mostly http://ADDRESS:6081/console. Unset: consoles of type xvpvnc are rejected, as in new "
                    "releases."),
    cfg.StrOpt("xvpvncproxy_host", default="0.0.0.0", deprecated_group="DEFAULT", deprecated_name="xvpvncproxy_host",
               help="Address that nova-xvpvncproxy listens on."),
    cfg.PortOpt("xvpvncproxy_port", default=6081, deprecated_group="DEFAULT", deprecated_name="xvpvncproxy_port",
                help="Port that nova-xvpvncproxy listens on."),
    cfg.ListOpt("auth_schemes", default=["none"], item_type=cfg.types.String(choices=("none", "vencrypt")),
                help="Authentication schemes of nova-novncproxy to QEMU, in order of preference: vencrypt (TLS, with "
                     "a certificate on both sides), none. With none, any client that can reach the port can reach "
                     "the guest."),
    cfg.StrOpt("vencrypt_client_key", help="Private key of the proxy for vencrypt, a PEM file."),
    cfg.StrOpt("vencrypt_client_cert", help="Certificate of the proxy for vencrypt, a PEM file."),
    cfg.StrOpt("vencrypt_ca_certs", help="CA certificates for QEMU's certificate, a PEM file. Needed by vencrypt."),
]


class VncOptions(Section, frozen=True, kw_only=True):
    """Values of ``[vnc]``."""

    enabled: bool
    server_listen: str
    server_proxyclient_address: str
    novncproxy_base_url: str
    novncproxy_host: str
    novncproxy_port: int
    xvpvncproxy_base_url: str | None
    xvpvncproxy_host: str
    xvpvncproxy_port: int
    auth_schemes: list[str]
    vencrypt_client_key: str | None
    vencrypt_client_cert: str | None
    vencrypt_ca_certs: str | None
