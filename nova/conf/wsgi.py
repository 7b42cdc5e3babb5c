"""``[wsgi]``: the HTTP servers of nova-api and its metadata service."""

from __future__ import annotations

from oslo_config import cfg

from nova.conf._section import Section

GROUP = "wsgi"

OPTS = [
    cfg.StrOpt("api_paste_config", default="api-paste.ini", deprecated_group="DEFAULT",
               help="File of the operator's own WSGI filters and applications around the compute API and the "
                    "metadata service, in PasteDeploy's format: a name next to nova.conf, or a path. Entries of "
                    "upstream's own file are built in, and ignored."),
    cfg.StrOpt("ssl_cert_file", deprecated_group="DEFAULT",
               help="Certificate of the servers; with a key, they use TLS."),
    cfg.StrOpt("ssl_key_file", deprecated_group="DEFAULT", help="Private key of the certificate."),
    cfg.StrOpt("ssl_ca_file", deprecated_group="DEFAULT",
               help="CA certificates for clients' certificates, which are then required."),
    cfg.IntOpt("default_pool_size", default=1000, min=0, deprecated_group="DEFAULT",
               deprecated_name="wsgi_default_pool_size",
               help="Number of requests that a worker serves at the same time (green threads)."),
    cfg.IntOpt("client_socket_timeout", default=900, min=0, deprecated_group="DEFAULT",
               help="Seconds without a byte after which a client's connection is closed. 0: never."),
]


class WsgiOptions(Section, frozen=True, kw_only=True):
    """Values of ``[wsgi]``."""

    api_paste_config: str
    ssl_cert_file: str | None
    ssl_key_file: str | None
    ssl_ca_file: str | None
    default_pool_size: int
    client_socket_timeout: int
