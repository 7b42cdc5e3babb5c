"""``[DEFAULT]`` options of the console proxies that speak WebSocket: their certificate and their pages."""

from __future__ import annotations

from oslo_config import cfg

GROUP = "DEFAULT"

OPTS = [
    cfg.BoolOpt("ssl_only", default=False, help="Take no connections but over TLS (https, wss)."),
    cfg.BoolOpt("source_is_ipv6", default=False, help="Listen on IPv6."),
    cfg.StrOpt("cert", default="self.pem", help="The proxy's certificate, a PEM file. Without the file there is no TLS."),
    cfg.StrOpt("key", help="The certificate's private key, when it is not in the same file."),
    cfg.StrOpt("web", help="Directory of the pages that are served. Unset: where Debian keeps the proxy's own, "
                           "/usr/share/novnc or /usr/share/spice-html5."),
    cfg.StrOpt("record", help="Prefix of files in which sessions are recorded (what the guest sent), for support. Each "
                              "is made with mode 0600 and ends at 256 MB; their number has no limit, and nova "
                              "removes none: record for a short time only."),
]

#: Taken on the proxies' command lines as well.
CLI_OPTS = OPTS

#: And there alone.
CLI_ONLY = [cfg.BoolOpt("daemon", default=False, help="Accepted for old start scripts. Daemons run in the foreground.")]
