"""``[DEFAULT]``: where nova-api listens, and a few defaults of servers."""

from __future__ import annotations

from oslo_config import cfg

GROUP = "DEFAULT"

OPTS = [
    cfg.ListOpt("enabled_apis", default=["osapi_compute", "metadata"],
                help="What nova-api serves: osapi_compute, metadata, ec2, or several of them."),
    cfg.HostAddressOpt("osapi_compute_listen", default="0.0.0.0", help="Address the compute API listens on."),
    cfg.PortOpt("osapi_compute_listen_port", default=8774, help="Port of the compute API."),
    cfg.IntOpt("osapi_compute_workers", min=1, help="Worker processes of the compute API. Unset: one a CPU."),
    cfg.HostAddressOpt("metadata_listen", default="0.0.0.0", help="Address the metadata service listens on."),
    cfg.PortOpt("metadata_listen_port", default=8775, help="Port of the metadata service."),
    cfg.IntOpt("metadata_workers", min=1, help="Worker processes of the metadata service. Unset: one a CPU."),
    cfg.IntOpt("max_local_block_devices", default=3,
               help="How many disks on its host a server may have: the root disk, ephemeral and swap disks. 0: none, so "
                    "that servers can only boot from volumes. Below 0: as many as they ask for."),
    cfg.IntOpt("password_length", default=12, min=0, help="Length of the passwords made for new servers."),
]
