"""``[DEFAULT]``: listeners of nova-api, and some defaults of servers."""

from __future__ import annotations

from oslo_config import cfg

GROUP = "DEFAULT"

OPTS = [
    cfg.ListOpt("enabled_apis", default=["osapi_compute", "metadata"],
                help="APIs that nova-api serves: osapi_compute, metadata, ec2, or several of them."),
    cfg.HostAddressOpt("osapi_compute_listen", default="0.0.0.0", help="Address that the compute API listens on."),
    cfg.PortOpt("osapi_compute_listen_port", default=8774, help="Port of the compute API."),
    cfg.IntOpt("osapi_compute_workers", min=1, help="Worker processes of the compute API. Unset: one for each CPU."),
    cfg.HostAddressOpt("metadata_listen", default="0.0.0.0", help="Address that the metadata service listens on."),
    cfg.PortOpt("metadata_listen_port", default=8775, help="Port of the metadata service."),
    cfg.IntOpt("metadata_workers", min=1, help="Worker processes of the metadata service. Unset: one for each CPU."),
    cfg.IntOpt("max_local_block_devices", default=3,
               help="Maximum number of a server's disks on its host: the root disk, ephemeral and swap disks. 0: "
                    "none, so that servers can only boot from volumes. Below 0: no limit."),
    cfg.IntOpt("password_length", default=12, min=0, help="Length of generated passwords for new servers."),
]
