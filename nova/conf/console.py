"""``[console]``: options of all console proxies."""

from __future__ import annotations

from oslo_config import cfg, types

from nova.conf._section import Section

GROUP = "console"

#: Proxies that nova-novncproxy can serve in its process: their programs' names without "nova-".
WITH_NOVNC = ("serialproxy", "spicehtml5proxy", "xvpvncproxy")

OPTS = [
    cfg.ListOpt("with_novncproxy", default=[], item_type=types.String(choices=WITH_NOVNC),
                help="Other proxies that nova-novncproxy serves, too, in its process: "
                     f"{', '.join(WITH_NOVNC)}. Each process saved is 40 MB of memory. Do not run their own "
                     "programs on the same machine then. They stop and restart together, and --web applies to all."),
    cfg.ListOpt("allowed_origins", default=[], deprecated_group="DEFAULT", deprecated_name="console_allowed_origins",
                help="Host names whose pages may open consoles, in addition to the proxy's own."),
    cfg.StrOpt("ssl_ciphers", help="OpenSSL cipher list (up to TLS 1.2) for browsers. Unset: OpenSSL's default."),
    cfg.StrOpt("ssl_minimum_version", default="default", choices=("default", "tlsv1_1", "tlsv1_2", "tlsv1_3"),
               help="Minimum TLS version for browsers; default is the system's."),
    cfg.ListOpt("reachable_networks", default=[],
                help="Networks (CIDR) of the hosts' consoles, to which the proxy may connect. Empty: any address "
                     "that a host reports for its guest's console; a compromised host could then direct a user to "
                     "another address."),
    cfg.ListOpt("local_hosts", default=[],
                help="Names ([DEFAULT]host) of the compute hosts that run on the proxy's machine, in addition to the "
                     "proxy's own name. Addresses like 127.0.0.1, and unix sockets, are accepted only from these: "
                     "reported by another host, they would lead to other guests' consoles."),
    cfg.IntOpt("max_sessions", default=1000, min=1, help="Maximum number of open consoles of one proxy process."),
    cfg.IntOpt("max_sessions_per_token", default=4, min=1, help="Maximum number of open consoles with one token."),
    cfg.IntOpt("max_sessions_per_server", default=10, min=1, help="Maximum number of open consoles of one server."),
    cfg.IntOpt("max_sessions_per_user", default=50, min=1, help="Maximum number of open consoles of one user."),
    cfg.IntOpt("session_idle_timeout", default=3600, min=0,
               help="Seconds without data after which a console is closed. 0: never."),
    cfg.IntOpt("session_timeout", default=0, min=0, help="Seconds after which any console is closed. 0: never."),
    cfg.IntOpt("connect_timeout", default=10, min=1, help="Seconds to wait for a connection to the guest's host."),
    cfg.StrOpt("xterm_path", default="/usr/share/javascript/xterm",
               help="Directory of xterm.js and xterm.css, for the page of serial consoles."),
]


class ConsoleOptions(Section, frozen=True, kw_only=True):
    """Values of ``[console]``."""

    with_novncproxy: list[str]
    allowed_origins: list[str]
    ssl_ciphers: str | None
    ssl_minimum_version: str
    reachable_networks: list[str]
    local_hosts: list[str]
    max_sessions: int
    max_sessions_per_token: int
    max_sessions_per_server: int
    max_sessions_per_user: int
    session_idle_timeout: int
    session_timeout: int
    connect_timeout: int
    xterm_path: str
