"""What images and flavors ask of a guest's machine: one table each, from a name to what it sets.

Names and allowed values: contract/image_properties.yaml and flavor_extra_specs.yaml. Three things may come of a
property we know: it sets a wish; its value is wrong (Invalid: no host can help); or it is a promise that this driver
does not keep (HostRefused: it is never dropped silently). What is in no table has no meaning to this driver.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from nova import errors


class WrongValue(errors.Invalid):
    code, message = "image.wrong_property", "{name}={value} is not possible: {reason}."


class NotHere(errors.HostRefused):
    code, message = "host.no_such_guest", "This host can not give {name}={value}: {reason}."


@dataclass(frozen=True, kw_only=True)
class Wishes:
    """What was asked for; None where nothing was."""

    architecture: str | None = None
    machine: str | None = None
    efi: bool = False
    disk_bus: str | None = None
    cdrom_bus: str | None = None
    scsi_model: str | None = None
    vif_model: str | None = None
    multiqueue: bool = False
    packed_ring: bool = False
    video_model: str | None = None
    video_ram_mb: int | None = None
    video_ram_max_mb: int = 0
    pointer: str | None = None
    input_bus: str | None = None
    rng: bool = True
    rng_bytes: int | None = None
    rng_period_ms: int | None = None
    watchdog_action: str | None = None
    sound_model: str | None = None
    usb_model: str | None = None
    agent: bool = False
    serial_ports: int = 1
    boot_menu: bool = False
    command_line: str | None = None
    hpet: bool = False
    pmu: bool | None = None
    hide_hypervisor: bool = False
    os_type: str | None = None
    sockets: int | None = None
    cores: int | None = None
    threads: int | None = None
    max_sockets: int | None = None
    max_cores: int | None = None
    max_threads: int | None = None


class Sets(NamedTuple):
    """A property that sets ``field`` to what ``read`` makes of its text."""

    field: str
    read: Callable[[str], Any]


class Refused(NamedTuple):
    """A promise that is not kept here, unless its value is one of ``harmless``."""

    harmless: frozenset[str]
    reason: str


def _yes(text: str) -> bool:
    value = text.strip().lower()
    if value in ("yes", "true", "on", "1", "y", "t"):
        return True
    if value in ("no", "false", "off", "0", "n", "f"):
        return False
    raise ValueError("it is neither yes nor no")


def _count(text: str) -> int:
    if not text.strip().isdecimal():
        raise ValueError("it is no number")
    return int(text)


def _some(text: str) -> int:
    number = _count(text)
    if number < 1:
        raise ValueError("it must be at least 1")
    return number


def _of(*allowed: str) -> Callable[[str], str]:
    def read(text: str) -> str:
        if text not in allowed:
            raise ValueError(f"it must be one of {', '.join(allowed)}")
        return text
    return read


def _efi(text: str) -> bool:
    return _of("bios", "uefi")(text) == "uefi"


def _rng(text: str) -> bool:
    return _of("virtio")(text) == "virtio"


def _ports(text: str) -> int:
    ports = _count(text)
    if ports > 4:
        raise ValueError("QEMU has at most 4 serial ports")
    return ports


_BUSES = ("ide", "sata", "scsi", "usb", "virtio")
_USB = _of("none", "nec-xhci", "qemu-xhci")
_SOUND = _of("sb16", "es1370", "pcspk", "ac97", "ich6", "ich9", "usb", "virtio")
_WATCHDOG = _of("none", "pause", "poweroff", "reset", "disabled")

IMAGE: dict[str, Sets] = {
    "hw_architecture": Sets("architecture", str),
    "hw_machine_type": Sets("machine", str),
    "hw_firmware_type": Sets("efi", _efi),
    "hw_disk_bus": Sets("disk_bus", _of(*_BUSES)),
    "hw_cdrom_bus": Sets("cdrom_bus", _of(*_BUSES)),
    "hw_scsi_model": Sets("scsi_model", _of("virtio-scsi", "lsilogic", "lsisas1068", "lsisas1078", "vmpvscsi",
                                            "buslogic", "ibmvscsi")),
    "hw_vif_model": Sets("vif_model", _of("virtio", "e1000", "e1000e", "rtl8139", "ne2k_pci", "pcnet", "igb",
                                          "vmxnet3", "lan9118", "spapr-vlan")),
    "hw_vif_multiqueue_enabled": Sets("multiqueue", _yes),
    "hw_virtio_packed_ring": Sets("packed_ring", _yes),
    "hw_video_model": Sets("video_model", _of("virtio", "vga", "qxl", "cirrus", "vmvga", "bochs", "none", "gop")),
    "hw_video_ram": Sets("video_ram_mb", _some),
    "hw_pointer_model": Sets("pointer", _of("usbtablet")),
    "hw_input_bus": Sets("input_bus", _of("usb", "virtio")),
    "hw_rng_model": Sets("rng", _rng),
    "hw_watchdog_action": Sets("watchdog_action", _WATCHDOG),
    "hw_sound_model": Sets("sound_model", _SOUND),
    "hw_usb_model": Sets("usb_model", _USB),
    "hw_qemu_guest_agent": Sets("agent", _yes),
    "hw_serial_port_count": Sets("serial_ports", _ports),
    "hw_boot_menu": Sets("boot_menu", _yes),
    "hw_time_hpet": Sets("hpet", _yes),
    "hw_pmu": Sets("pmu", _yes),
    "hw_cpu_sockets": Sets("sockets", _some),
    "hw_cpu_cores": Sets("cores", _some),
    "hw_cpu_threads": Sets("threads", _some),
    "hw_cpu_max_sockets": Sets("max_sockets", _some),
    "hw_cpu_max_cores": Sets("max_cores", _some),
    "hw_cpu_max_threads": Sets("max_threads", _some),
    "img_hide_hypervisor_id": Sets("hide_hypervisor", _yes),
    "os_command_line": Sets("command_line", str),
    "os_type": Sets("os_type", _of("linux", "windows")),
    "hw_vm_mode": Sets("", _of("hvm")),
}

#: What a flavor sets stands above what its image asks for.
FLAVOR: dict[str, Sets] = {
    "hw:cpu_sockets": Sets("sockets", _some),
    "hw:cpu_cores": Sets("cores", _some),
    "hw:cpu_threads": Sets("threads", _some),
    "hw:cpu_max_sockets": Sets("max_sockets", _some),
    "hw:cpu_max_cores": Sets("max_cores", _some),
    "hw:cpu_max_threads": Sets("max_threads", _some),
    "hw:boot_menu": Sets("boot_menu", _yes),
    "hw:vif_multiqueue_enabled": Sets("multiqueue", _yes),
    "hw:virtio_packed_ring": Sets("packed_ring", _yes),
    "hw:pmu": Sets("pmu", _yes),
    "hw:serial_port_count": Sets("serial_ports", _ports),
    "hw:watchdog_action": Sets("watchdog_action", _WATCHDOG),
    "hw:sound_model": Sets("sound_model", _SOUND),
    "hw:usb_model": Sets("usb_model", _USB),
    "hw:hide_hypervisor_id": Sets("hide_hypervisor", _yes),
    "hide_hypervisor_id": Sets("hide_hypervisor", _yes),
    "hw_rng:allowed": Sets("rng", _yes),
    "hw_rng:rate_bytes": Sets("rng_bytes", _count),
    "hw_rng:rate_period": Sets("rng_period_ms", _count),
    "hw_video:ram_max_mb": Sets("video_ram_max_mb", _count),
}

_NO = frozenset({"no", "false", "off", "0", "n", "f"})
_NOT_YET = "this release does not have it"

REFUSED: dict[str, Refused] = {
    **{name: Refused(frozenset({"shared"}), "CPUs can not be dedicated to a guest here")
       for name in ("hw:cpu_policy", "hw_cpu_policy")},
    **{name: Refused(_NO, "realtime CPUs need dedicated ones") for name in ("hw:cpu_realtime",)},
    **{name: Refused(frozenset({"small", "any"}), "huge pages are not given out here")
       for name in ("hw:mem_page_size", "hw_mem_page_size")},
    **{name: Refused(_NO, _NOT_YET)
       for name in ("hw:locked_memory", "hw_locked_memory", "hw:mem_encryption", "hw_mem_encryption",
                    "hw:ephemeral_encryption", "hw_ephemeral_encryption", "hw_firmware_stateless",
                    "os_require_quiesce")},
    **{name: Refused(frozenset(), _NOT_YET)
       for name in ("hw:mem_encryption_model", "hw_mem_encryption_model", "hw:tpm_version", "hw_tpm_version",
                    "hw:tpm_model", "hw_tpm_model", "hw:viommu_model", "hw_viommu_model", "hw:pmem",
                    "hw_emulation_architecture", "pci_passthrough:alias", "accel:device_profile", "hw_numa_nodes",
                    "hw:numa_nodes", "hw_maxphysaddr_bits", "hw_maxphysaddr_mode")},
    **{name: Refused(frozenset({"disabled", "optional"}), "there is no secure boot here")
       for name in ("os:secure_boot", "os_secure_boot")},
}

#: Old names of image properties that this driver looks at.
OLD_NAMES = {"architecture": "hw_architecture", "vm_mode": "hw_vm_mode"}


def wishes(image: Mapping[str, str], extra_specs: Mapping[str, str]) -> Wishes:
    """What image and flavor ask for together. WrongValue, or NotHere for what this driver never gives."""
    renamed = {OLD_NAMES.get(name, name): value for name, value in image.items()}
    for name, value in (*renamed.items(), *extra_specs.items()):
        _refuse_promise(name, value)
    wished = dict(_set_by(IMAGE, renamed.items()))
    decided = dict(_set_by(FLAVOR, extra_specs.items()))
    return replace(Wishes(), **{**wished, **decided})


def _refuse_promise(name: str, value: str) -> None:
    promise = REFUSED.get(name)
    if promise is not None and value.strip().lower() not in promise.harmless:
        raise NotHere(name=name, value=value, reason=promise.reason)


def _set_by(table: Mapping[str, Sets], given: Iterable[tuple[str, str]]) -> Iterable[tuple[str, Any]]:
    for name, value in given:
        row = table.get(name)
        if row is None:
            continue
        try:
            read = row.read(value)
        except ValueError as error:
            raise WrongValue(name=name, value=value, reason=str(error)) from None
        if row.field:
            yield row.field, read
