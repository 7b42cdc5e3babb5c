"""``[cinder]``: the volume service next door. Credentials (``auth_type``, ``auth_url``, ``username``, ...) and TLS
options (``cafile``, ``insecure``, ...) are keystoneauth's own and are read by ``nova.clients.session``."""

from __future__ import annotations

from oslo_config import cfg

from nova.conf._urls import WebUrl

GROUP = "cinder"

OPTS = [
    cfg.StrOpt("catalog_info", default="volumev3::publicURL",
               help="What to look for in the catalog, as TYPE:NAME:INTERFACE; the name may be empty. The address that "
                    "is found must be of version 3 (it has /v3 in it)."),
    cfg.Opt("endpoint_template", type=WebUrl(),
               help="Address of the volume service; stands above the catalog. %(project_id)s in it means the "
                    "asking project, for example http://controller:8776/v3/%(project_id)s."),
    cfg.StrOpt("os_region_name", help="Region to look in, in the catalog."),
    cfg.IntOpt("http_retries", default=3, min=0,
               help="How often a call without an answer is made again, if it may be repeated and while there is "
                    "time. Connecting and deleting an attachment are made again four times at least. All attempts "
                    "together take one and a half read_timeout at most, and within a request no longer than its "
                    "caller waits (four fifths of rpc_response_timeout)."),
    cfg.IntOpt("read_timeout", default=90, min=1,
               help="Seconds without a byte after which an answer is given up. Another name of it: timeout. It should "
                    "be longer than Cinder's own rpc_response_timeout (60 s by default): connecting a volume is "
                    "answered when its back end is done."),
    cfg.BoolOpt("cross_az_attach", default=True,
                help="Whether a server may have volumes of another availability zone. False: volumes of a new server must "
                     "be of one zone, which is the server's, and new volumes are made in it. Other volumes are not "
                     "attached, and a shelved server does not leave its volumes' zone. Cinder's zones must be named like "
                     "nova's. Read by nova-conductor."),
    cfg.BoolOpt("debug", default=False,
                help="Log each call of the volume service with its status and Cinder's request id, and os-brick's "
                     "own debug lines. How a volume is reached is never logged."),
]
