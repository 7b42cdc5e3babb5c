"""``[pci]``: PCI devices passed through to guests."""

from __future__ import annotations

from oslo_config import cfg

from nova.conf._section import Section

GROUP = "pci"

OPTS = [
    cfg.MultiStrOpt("alias", default=[], deprecated_name="pci_alias", deprecated_group="DEFAULT",
                    help="Name for a kind of devices, which flavors request with "
                         "pci_passthrough:alias=<name>:<count>. JSON, one object for each option; may be given "
                         "several times. Keys: name; vendor_id and product_id (four hexadecimal digits). device_type "
                         "is type-PCI, type-PF or type-VF; without it type-PCI and type-VF match. More keys: "
                         "numa_policy (required, preferred, legacy, socket; default legacy); resource_class and "
                         "traits (as Placement shows the device); live_migratable (yes, no). Several aliases of one "
                         'name are alternatives. Example: {"name": "gpu", "vendor_id": "10de", "product_id": "1db4", '
                         '"numa_policy": "required"}. Read by nova-conductor.'),
    cfg.MultiStrOpt("device_spec", default=[], deprecated_opts=[
                        cfg.DeprecatedOpt("passthrough_whitelist", group="pci"),
                        cfg.DeprecatedOpt("pci_passthrough_whitelist", group="DEFAULT")],
                    help="Devices of this host available to guests. JSON, one object or a list of them for each "
                         "option; may be given several times. Keys: vendor_id, product_id, address (with * for any "
                         "part, or an object of regular expressions for domain, bus, slot and function), devname. "
                         "More keys are tags of the devices: physical_network, trusted, remote_managed, managed, "
                         'live_migratable, resource_class, traits. Example: {"vendor_id": "10de", "product_id": '
                         '"1db4", "address": "0000:81:*.*"}. Read by nova-compute.'),
    cfg.BoolOpt("report_in_placement", default=False,
                help="Report the devices of device_spec as resource providers below this host's. It cannot be "
                     "disabled again for a host. Read by nova-compute."),
]


class PciOptions(Section, frozen=True, kw_only=True):
    """Values of ``[pci]``."""

    alias: list[str]
    device_spec: list[str]
    report_in_placement: bool
