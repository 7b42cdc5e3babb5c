"""Image properties that nova interprets, and their valid values.

Source: the public contract of the Compute API (image properties). Properties that are in no table are ignored. A known
property with a wrong value is refused when a server is created or rebuilt.
"""

from __future__ import annotations

import contextlib
import json
import re
import uuid
from collections.abc import Callable, Mapping

from nova.model.flavor.extra_specs import FLAG, NUMBER, ExtraSpecRule, one_of

ARCHITECTURES = ("alpha", "armv6", "armv7l", "armv7b", "aarch64", "cris", "i686", "ia64", "lm32", "m68k",
                 "microblaze", "microblazeel", "mips", "mipsel", "mips64", "mips64el", "openrisc", "parisc",
                 "parisc64", "ppc", "ppcle", "ppc64", "ppc64le", "ppcemb", "s390", "s390x", "sh4", "sh4eb", "sparc",
                 "sparc64", "unicore32", "x86_64", "xtensa", "xtensaeb")
BUSES = ("fdc", "ide", "sata", "scsi", "usb", "virtio", "xen", "lxc", "uml")

#: Valid values of properties with a closed list.
CHOICES: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("hw_architecture", "hw_emulation_architecture"), ARCHITECTURES),
    **dict.fromkeys(("hw_cdrom_bus", "hw_disk_bus", "hw_floppy_bus", "hw_rescue_bus"), BUSES),
    "hw_cpu_policy": ("dedicated", "shared", "mixed"),
    "hw_cpu_thread_policy": ("prefer", "isolate", "require"),
    "hw_firmware_type": ("uefi", "bios"),
    "hw_input_bus": ("usb", "virtio"),
    "hw_mem_encryption_model": ("amd-sev", "amd-sev-es", "amd-sev-snp"),
    "hw_pci_numa_affinity_policy": ("required", "legacy", "preferred", "socket"),
    "hw_pointer_model": ("usbtablet",),
    "hw_rescue_device": ("cdrom", "disk", "floppy", "fs", "lun"),
    "hw_rng_model": ("virtio",),
    "hw_scsi_model": ("buslogic", "ibmvscsi", "lsilogic", "lsisas1068", "lsisas1078", "virtio-scsi", "vmpvscsi"),
    "hw_video_model": ("cirrus", "qxl", "vga", "vmvga", "xen", "virtio", "gop", "none", "bochs"),
    "hw_vif_model": ("virtio", "ne2k_pci", "pcnet", "rtl8139", "e1000", "e1000e", "netfront", "spapr-vlan", "lan9118",
                     "sriov", "vmxnet", "vmxnet3", "igb"),
    "hw_viommu_model": ("intel", "smmuv3", "virtio", "auto"),
    "hw_vm_mode": ("hvm", "xen", "uml", "exe"),
    "hw_watchdog_action": ("none", "pause", "poweroff", "reset", "disabled"),
    "hw_tpm_model": ("tpm-tis", "tpm-crb"),
    "hw_tpm_version": ("1.2", "2.0"),
    "hw_ephemeral_encryption_format": ("plain", "luks", "luksv2"),
    "hw_maxphysaddr_mode": ("passthrough", "emulate"),
    "hw_sound_model": ("sb16", "es1370", "pcspk", "ac97", "ich6", "ich9", "usb", "virtio"),
    "hw_usb_model": ("none", "nec-xhci", "qemu-xhci"),
    "img_hv_type": ("baremetal", "bhyve", "docker", "fake", "hyperv", "ironic", "kqemu", "kvm", "lxc", "lxd", "openvz",
                    "parallels", "phyp", "qemu", "test", "uml", "vbox", "vz", "vmware", "xen", "zvm", "prsm"),
    "img_config_drive": ("optional", "mandatory"),
    "img_signature_hash_method": ("SHA-224", "SHA-256", "SHA-384", "SHA-512"),
    "img_signature_key_type": ("DSA", "ECC_SECP384R1", "ECC_SECP521R1", "ECC_SECT409K1", "ECC_SECT409R1",
                               "ECC_SECT571K1", "ECC_SECT571R1", "RSA-PSS"),
    "os_secure_boot": ("required", "disabled", "optional"),
    "os_type": ("linux", "windows"),
}
#: Properties that are true or false, in any of the usual spellings.
BOOLEANS = (
    "hw_boot_menu", "hw_firmware_stateless", "hw_ipxe_boot", "hw_locked_memory", "hw_mem_encryption", "hw_pmu",
    "hw_qemu_guest_agent", "hw_time_hpet", "hw_vif_multiqueue_enabled", "hw_ephemeral_encryption",
    "hw_virtio_packed_ring", "img_bittorrent", "img_bdm_v2", "img_cache_in_nova", "img_linked_clone", "img_use_agent",
    "img_hide_hypervisor_id", "os_require_quiesce", "os_skip_agent_inject_files_at_boot", "os_skip_agent_inject_ssh")
INTEGERS = (
    "hw_cpu_cores", "hw_cpu_sockets", "hw_cpu_max_cores", "hw_cpu_max_sockets", "hw_cpu_max_threads", "hw_cpu_threads",
    "hw_device_id", "hw_numa_nodes", "hw_serial_port_count", "hw_video_ram", "hw_maxphysaddr_bits",
    "hw_redirected_usb_ports", "img_compression_level", "img_version")
UUIDS = ("hw_ephemeral_encryption_secret_uuid", "img_signature_certificate_uuid")

#: Old name -> present name.
OLD_NAMES = {
    "architecture": "hw_architecture", "owner_id": "img_owner_id", "vmware_disktype": "hw_disk_type",
    "vmware_image_version": "img_version", "vmware_ostype": "os_distro", "auto_disk_config": "hw_auto_disk_config",
    "ipxe_boot": "hw_ipxe_boot", "xenapi_device_id": "hw_device_id",
    "xenapi_image_compression_level": "img_compression_level", "vmware_linked_clone": "img_linked_clone",
    "xenapi_use_agent": "img_use_agent", "xenapi_skip_agent_inject_ssh": "os_skip_agent_inject_ssh",
    "xenapi_skip_agent_inject_files_at_boot": "os_skip_agent_inject_files_at_boot",
    "cache_in_nova": "img_cache_in_nova", "vm_mode": "hw_vm_mode", "bittorrent": "img_bittorrent",
    "mappings": "img_mappings", "block_device_mapping": "img_block_device_mapping", "bdm_v2": "img_bdm_v2",
    "root_device_name": "img_root_device_name", "hypervisor_version_requires": "img_hv_requested_version",
    "hypervisor_type": "img_hv_type"}

#: Properties whose values are not case-sensitive, and further spellings of their values.
LOOSE: dict[str, Mapping[str, str]] = {
    "hw_architecture": {"amd64": "x86_64", "i386": "i686", "i486": "i686", "i586": "i686", "arm64": "aarch64"},
    "hw_vm_mode": {"hv": "hvm", "pv": "xen", "baremetal": "hvm"},
    "img_hv_type": {"xapi": "xen", "powervm": "phyp"},
    "hw_vif_model": {"virtuale1000": "e1000", "virtuale1000e": "e1000e", "virtualpcnet32": "pcnet",
                     "virtualsriovethernetcard": "sriov", "virtualvmxnet": "vmxnet", "virtualvmxnet3": "vmxnet3"},
    "hw_scsi_model": {"lsilogicsas": "lsisas1068", "paravirtual": "vmpvscsi"},
    "os_type": {},
}

LONGEST = 255  # characters of a single value; lists of disks may be longer
#: One condition on a version, without surrounding white space: (the comparison, the version).
CONDITION = re.compile(r"(==|!=|<=|>=|=|<|>)?\s*([0-9]{1,9}(?:\.[0-9]{1,9}){0,9})")
_CPUS = re.compile(r"\^?[0-9]+(-[0-9]+)?")


def _is_uuid(value: str) -> str | None:
    with contextlib.suppress(ValueError):
        uuid.UUID(value)
        return None
    return "must be a UUID"


def _is_list(value: str) -> str | None:
    """Return an error unless the value is a JSON list of objects."""
    items = None
    with contextlib.suppress(ValueError, RecursionError):
        items = json.loads(value)
    ok = isinstance(items, list) and all(isinstance(item, dict) for item in items)
    return None if ok else "must be a JSON list of objects"


def _is_condition(value: str) -> str | None:
    ok = all(CONDITION.fullmatch(part.strip()) for part in value.split(","))
    return None if ok else "must be a version condition such as >=2.6"


def _are_cpus(value: str) -> str | None:
    parts = [part.strip() for part in value.split(",")]
    ok = not parts[0].startswith("^") and all(_CPUS.fullmatch(part) for part in parts)
    return None if ok else "must be a CPU set such as 0-3,^2"


def _by(rule: ExtraSpecRule) -> Callable[[str], str | None]:
    return lambda value: rule.problem(value.strip())


LISTS = ("img_block_device_mapping", "img_mappings")
#: Name -> function that returns the error of a value (None if it is valid).
PROBLEMS: dict[str, Callable[[str], str | None]] = {
    **{name: one_of(*allowed).problem for name, allowed in CHOICES.items()},
    **dict.fromkeys(BOOLEANS, _by(FLAG)),
    **dict.fromkeys(INTEGERS, _by(NUMBER)),
    **dict.fromkeys(UUIDS, _is_uuid),
    **dict.fromkeys(LISTS, _is_list),
    "img_hv_requested_version": _is_condition,
}
#: The same for names that end in a node's number: ``hw_numa_cpus.0``.
NUMBERED: dict[str, Callable[[str], str | None]] = {"hw_numa_cpus": _are_cpus, "hw_numa_mem": _by(NUMBER)}


def problem(properties: Mapping[str, str]) -> str | None:
    """Return the error of the first invalid property; None if all are valid."""
    for given, value in sorted(properties.items()):
        name = OLD_NAMES.get(given, given)
        base, dot, number = name.partition(".")
        check = NUMBERED.get(base) if dot and number.isdecimal() else PROBLEMS.get(name)
        wrong = None
        if check is not None:
            too_long = len(value) > LONGEST and name not in LISTS
            wrong = f"is longer than {LONGEST} characters" if too_long else check(_canonical(name, value))
        if wrong is not None:
            return f"image property {given} has the invalid value {value[:100]!r}: it {wrong}"
    return None


def _canonical(name: str, value: str) -> str:
    if name not in LOOSE:
        return value
    lower = value.strip().lower()
    return LOOSE[name].get(lower, lower)
