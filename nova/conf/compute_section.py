"""``[compute]``: more resources of a host, and more options for the management of its guests."""

from __future__ import annotations

from oslo_config import cfg

from nova.conf._section import Section

GROUP = "compute"

OPTS = [
    cfg.StrOpt("cpu_shared_set",
               help="CPUs for guests without pinning, as 4-12,^8,15. They form the VCPU inventory, and run separate "
                    "emulator threads (hw:emulator_threads_policy=share). Unset: all CPUs, or none if "
                    "cpu_dedicated_set is set."),
    cfg.StrOpt("cpu_dedicated_set",
               help="CPUs pinned to one guest each (hw:cpu_policy=dedicated), as 4-12,^8,15: the PCPU inventory. "
                    "They must not be in cpu_shared_set. Unset: none."),
    cfg.StrOpt("provider_config_location", default="/etc/nova/provider_config/",
               help="Directory of *.yaml files that add inventories and traits to this host's resource provider; "
                    "read at start."),
    cfg.BoolOpt("live_migration_wait_for_vif_plug", default=True,
                help="Start a live migration to this host only after Neutron has seen its plugged interfaces. This "
                     "applies if Neutron can see them before the guest arrives: with hybrid plugging of Open "
                     "vSwitch."),
    cfg.IntOpt("max_disk_devices_to_attach", default=-1, min=-1,
               help="Maximum number of disks of a guest on this host: local disks, volumes and a config drive "
                    "together. It applies when a guest is built, rebuilt, unshelved, evacuated or live migrated to "
                    "this host, and when a volume is attached. -1: as many as its buses allow; 0: none. A host with "
                    "a lower number than others rejects guests that arrive with more: set it to the same value on "
                    "all hosts."),
    cfg.IntOpt("shutdown_retry_interval", default=10, min=1,
               help="Seconds after which a guest that has not shut down on request is asked again."),
]


class ComputeOptions(Section, frozen=True, kw_only=True):
    """Values of ``[compute]``."""

    cpu_shared_set: str | None
    cpu_dedicated_set: str | None
    provider_config_location: str
    live_migration_wait_for_vif_plug: bool
    max_disk_devices_to_attach: int
    shutdown_retry_interval: int
