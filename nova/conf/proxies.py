"""``[DEFAULT]`` options of the WebSocket console proxies: their certificates and pages."""

from __future__ import annotations

from oslo_config import cfg

GROUP = "DEFAULT"

OPTS = [
    cfg.BoolOpt("ssl_only", default=False, help="Accept only TLS connections (https, wss)."),
    cfg.BoolOpt("source_is_ipv6", default=False, help="Listen on IPv6."),
    cfg.StrOpt("cert", default="self.pem", help="Certificate of the proxy, a PEM file. If it is missing, TLS is off."),
    cfg.StrOpt("key", help="Private key of the certificate, if it is not in the same file."),
    cfg.StrOpt("web", help="Directory of the pages that are served. Unset: the proxy's own on Debian, "
                           "/usr/share/novnc or /usr/share/spice-html5."),
    cfg.StrOpt("record", help="Prefix of files in which sessions are recorded (data sent by the guest), for support. "
                              "Each file has mode 0600 and ends at 256 MB. Their number has no limit, and nova "
                              "removes none: record only for a short time."),
]

#: Accepted on the proxies' command lines as well.
CLI_OPTS = OPTS

#: Accepted only there.
CLI_ONLY = [cfg.BoolOpt("daemon", default=False, help="Accepted for old start scripts. Daemons run in the foreground.")]
