"""``[wsgi]``: the HTTP servers of nova-api and its metadata service."""

from __future__ import annotations

from oslo_config import cfg

GROUP = "wsgi"

OPTS = [
    cfg.StrOpt("api_paste_config", default="api-paste.ini", deprecated_group="DEFAULT",
               help="The operator's own WSGI filters and applications around the compute API and the metadata service, "
                    "as PasteDeploy has them: a file beside nova.conf, or a path. What upstream's own file names is "
                    "part of the application already, and skipped."),
    cfg.StrOpt("ssl_cert_file", deprecated_group="DEFAULT", help="Certificate; with a key, the servers speak TLS."),
    cfg.StrOpt("ssl_key_file", deprecated_group="DEFAULT", help="Private key of the certificate."),
    cfg.StrOpt("ssl_ca_file", deprecated_group="DEFAULT", help="Authority that clients' certificates must come from."),
    cfg.IntOpt("default_pool_size", default=1000, min=0, deprecated_group="DEFAULT",
               deprecated_name="wsgi_default_pool_size", help="Requests a worker serves at a time (green threads)."),
    cfg.IntOpt("client_socket_timeout", default=900, min=0, deprecated_group="DEFAULT",
               help="Seconds without a byte after which a client's connection is closed. 0: never."),
]
