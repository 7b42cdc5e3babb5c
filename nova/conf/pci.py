"""``[pci]``: devices of hosts that guests may be given whole."""

from __future__ import annotations

from oslo_config import cfg

GROUP = "pci"

OPTS = [
    cfg.MultiStrOpt("alias", default=[], deprecated_name="pci_alias", deprecated_group="DEFAULT",
                    help="A name for a kind of devices, which flavors ask for with pci_passthrough:alias=<name>:<count>; "
                         "JSON, one object an option, may be given several times. Keys: name; vendor_id and "
                         "product_id (four hexadecimal digits). device_type is type-PCI, type-PF or type-VF; "
                         "without it type-PCI and type-VF match. More keys: numa_policy (required, preferred, "
                         "legacy, socket; legacy without it); "
                         "resource_class and traits (as Placement shows the device); live_migratable (yes, no). "
                         "Several aliases of one name are alternatives. Example: "
                         '{"name": "gpu", "vendor_id": "10de", "product_id": "1db4", "numa_policy": "required"}. '
                         "Read by nova-conductor."),
    cfg.MultiStrOpt("device_spec", default=[], deprecated_opts=[
                        cfg.DeprecatedOpt("passthrough_whitelist", group="pci"),
                        cfg.DeprecatedOpt("pci_passthrough_whitelist", group="DEFAULT")],
                    help="Which of this host's devices guests may be given; JSON, one object or a list of them an "
                         "option, may be given several times. Keys: vendor_id, product_id, address (with * for any "
                         "part, or an object of regular expressions for domain, bus, slot and function), devname. "
                         "More keys are tags that the devices get: physical_network, trusted, remote_managed, "
                         "managed, "
                         "live_migratable, resource_class, traits. Example: "
                         '{"vendor_id": "10de", "product_id": "1db4", "address": "0000:81:*.*"}. '
                         "Read by nova-compute."),
    cfg.BoolOpt("report_in_placement", default=False,
                help="Show the devices of device_spec as resource providers below this host's. Once it is on it stays "
                     "on for a host. Read by nova-compute."),
]
