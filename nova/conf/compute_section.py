"""``[compute]``: more about what a host gives to its guests, and how it keeps them."""

from __future__ import annotations

from oslo_config import cfg

GROUP = "compute"

OPTS = [
    cfg.StrOpt("cpu_shared_set",
               help="Processors for guests that float, as 4-12,^8,15. They are the VCPU inventory then, and where emulator "
                    "threads run that are to be apart (hw:emulator_threads_policy=share). Unset: all, or with "
                    "cpu_dedicated_set none."),
    cfg.StrOpt("cpu_dedicated_set",
               help="Processors that are given to one guest each (hw:cpu_policy=dedicated), as 4-12,^8,15: the PCPU "
                    "inventory. None of them may be in cpu_shared_set. Unset: none."),
    cfg.StrOpt("provider_config_location", default="/etc/nova/provider_config/",
               help="Directory of files *.yaml that give this host's resource provider more inventories and traits; read "
                    "at start."),
    cfg.BoolOpt("live_migration_wait_for_vif_plug", default=True,
                help="Let a running guest come here only when Neutron has seen its plugged interfaces. This counts "
                     "where Neutron can see them before the guest is here: with hybrid plugging of Open vSwitch."),
    cfg.IntOpt("max_disk_devices_to_attach", default=-1, min=-1,
               help="How many disks a guest of this host may have: local disks, volumes and a config drive together. It "
                    "counts when a guest is built, rebuilt, evacuated to here, unshelved or migrated live to here, and "
                    "when a volume is attached. -1: as many as its buses take; 0: none. A host with a lower number than "
                    "the others' refuses guests that come with more: set it alike on all hosts."),
    cfg.IntOpt("shutdown_retry_interval", default=10, min=1,
               help="Seconds after which a guest that was asked to shut down, and is still up, is asked again."),
]
