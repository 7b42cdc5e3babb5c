"""``[serial_console]``: guests' serial ports, to be typed into."""

from __future__ import annotations

from oslo_config import cfg

GROUP = "serial_console"

OPTS = [
    cfg.BoolOpt("enabled", default=False,
                help="Let guests' serial ports be reached from outside. The console log is kept anyway."),
    cfg.StrOpt("port_range", default="10000:20000",
               help="TCP ports that this host's guests' serial ports are served on, first:last."),
    cfg.URIOpt("base_url", default="ws://127.0.0.1:6083/", schemes=("ws", "wss", "http", "https"),
               help="Read by nova-consoleauth: where users' programs find nova-serialproxy. With http in place of ws it "
                    "is the address of a page with a terminal."),
    cfg.HostAddressOpt("proxyclient_address", default="127.0.0.1",
                       help="Address at which the console proxy reaches this host; QEMU listens on it. 127.0.0.1 serves "
                            "only for a proxy on this very machine: any other one refuses it."),
    cfg.HostAddressOpt("serialproxy_host", default="0.0.0.0", help="Address that nova-serialproxy listens on."),
    cfg.PortOpt("serialproxy_port", default=6083, help="Port that nova-serialproxy listens on."),
    cfg.StrOpt("socket_dir",
               help="Serve serial ports on unix sockets in this directory rather than on TCP ports. For clouds whose "
                    "proxy runs on the guests' own host: it connects to sockets in this directory alone, and has to be "
                    "in QEMU's group to do so."),
]
