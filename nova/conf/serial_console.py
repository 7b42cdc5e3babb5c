"""``[serial_console]``: interactive consoles on guests' serial ports."""

from __future__ import annotations

from oslo_config import cfg

from nova.conf._section import Section

GROUP = "serial_console"

OPTS = [
    cfg.BoolOpt("enabled", default=False,
                help="Allow access to guests' serial ports from outside. The console log is kept in any case."),
    cfg.StrOpt("port_range", default="10000:20000",
               help="TCP ports for the serial ports of this host's guests, first:last."),
    cfg.URIOpt("base_url", default="ws://127.0.0.1:6083/", schemes=("ws", "wss", "http", "https"),
               help="Read by nova-consoleauth: URL of nova-serialproxy for users' programs. With http instead of ws "
                    "it is a page with a terminal."),
    cfg.HostAddressOpt("proxyclient_address", default="127.0.0.1",
                       help="Address at which the console proxy reaches this host; QEMU listens on it. 127.0.0.1 "
                            "works only for a proxy on this machine: others reject it."),
    cfg.HostAddressOpt("serialproxy_host", default="0.0.0.0", help="Address that nova-serialproxy listens on."),
    cfg.PortOpt("serialproxy_port", default=6083, help="Port that nova-serialproxy listens on."),
    cfg.StrOpt("socket_dir",
               help="Directory of unix sockets for serial ports, instead of TCP ports. For clouds whose proxy runs "
                    "on the guests' own host: it connects only to sockets in this directory, and must be in QEMU's "
                    "group."),
]


class SerialConsoleOptions(Section, frozen=True, kw_only=True):
    """Values of ``[serial_console]``."""

    enabled: bool
    port_range: str
    base_url: str
    proxyclient_address: str
    serialproxy_host: str
    serialproxy_port: int
    socket_dir: str | None
