"""``[cinder]``: the volume service. Credentials (``auth_type``, ``auth_url``, ``username``, ...) and TLS options
(``cafile``, ``insecure``, ...) are keystoneauth's own and are read by ``nova.clients.session``."""

from __future__ import annotations

from oslo_config import cfg

from nova.conf._section import Section
from nova.conf._urls import WebUrl

GROUP = "cinder"

OPTS = [
    cfg.StrOpt("catalog_info", default="volumev3::publicURL",
               help="Catalog entry of the volume service, as TYPE:NAME:INTERFACE; the name may be empty. Its URL "
                    "must be of version 3 (it contains /v3)."),
    cfg.Opt("endpoint_template", type=WebUrl(),
               help="URL of the volume service; takes precedence over the catalog. %(project_id)s in it means the "
                    "requesting project, for example http://controller:8776/v3/%(project_id)s."),
    cfg.StrOpt("os_region_name", help="Region of the volume service in the catalog."),
    cfg.IntOpt("http_retries", default=3, min=0,
               help="Number of retries of a call without a response, if it may be repeated and time is left. "
                    "Connecting and deleting an attachment are retried at least four times. All attempts together "
                    "take at most one and a half read_timeout, and within a request no longer than its caller waits "
                    "(four fifths of rpc_response_timeout)."),
    cfg.IntOpt("read_timeout", default=90, min=1,
               help="Seconds without a byte after which a call fails. Alias: timeout. It should be longer than "
                    "Cinder's own rpc_response_timeout (60 s by default): Cinder responds to a volume connection "
                    "only after its back end has finished."),
    cfg.BoolOpt("cross_az_attach", default=True,
                help="Whether a server may have volumes of another availability zone. False: volumes of a new server "
                     "must be of one zone, which becomes the server's, and new volumes are created in it. Other "
                     "volumes are not attached, and a shelved server does not leave its volumes' zone. Cinder's "
                     "zones must have the same names as nova's. Read by nova-conductor."),
    cfg.BoolOpt("debug", default=False,
                help="Log each call to the volume service with its status and Cinder's request id, and os-brick's "
                     "debug lines. Connection information of volumes is never logged."),
]


class CinderOptions(Section, frozen=True, kw_only=True):
    """Values of ``[cinder]``."""

    catalog_info: str
    endpoint_template: str | None
    os_region_name: str | None
    http_retries: int
    read_timeout: int
    cross_az_attach: bool
    debug: bool
