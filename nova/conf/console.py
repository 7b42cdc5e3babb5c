"""``[console]``: what all console proxies have in common."""

from __future__ import annotations

from oslo_config import cfg

GROUP = "console"

OPTS = [
    cfg.ListOpt("allowed_origins", default=[], deprecated_group="DEFAULT", deprecated_name="console_allowed_origins",
                help="Host names whose pages may open consoles, beside the proxy's own."),
    cfg.StrOpt("ssl_ciphers", help="OpenSSL's list of ciphers (up to TLS 1.2) that browsers are offered. Unset: its own."),
    cfg.StrOpt("ssl_minimum_version", default="default", choices=("default", "tlsv1_1", "tlsv1_2", "tlsv1_3"),
               help="The oldest TLS that browsers may speak; default is the system's."),
    cfg.ListOpt("reachable_networks", default=[],
                help="Networks (CIDR) the proxy may connect to, where the hosts' consoles are. Empty: wherever a host "
                     "says that its guest's console is; a stolen host could then point a user at another address."),
    cfg.ListOpt("local_hosts", default=[],
                help="Names ([DEFAULT]host) of the compute hosts that run on the proxy's machine, beside the proxy's own "
                     "name. Addresses like 127.0.0.1, and unix sockets, are taken from these alone: from another host "
                     "they would lead to other guests' consoles."),
    cfg.IntOpt("max_sessions", default=1000, min=1, help="Consoles open at a time through one proxy process."),
    cfg.IntOpt("max_sessions_per_token", default=4, min=1, help="Consoles open at a time with one address."),
    cfg.IntOpt("max_sessions_per_server", default=10, min=1, help="Consoles of one server open at a time."),
    cfg.IntOpt("max_sessions_per_user", default=50, min=1, help="Consoles that one user has open at a time."),
    cfg.IntOpt("session_idle_timeout", default=3600, min=0,
               help="Seconds after which a console on which nothing moves is closed; 0 is never."),
    cfg.IntOpt("session_timeout", default=0, min=0, help="Seconds after which a console is closed at all; 0 is never."),
    cfg.IntOpt("connect_timeout", default=10, min=1, help="Seconds that the guest's host has to take a connection."),
    cfg.StrOpt("xterm_path", default="/usr/share/javascript/xterm",
               help="Where xterm.js and xterm.css are, for the page of serial consoles."),
]
