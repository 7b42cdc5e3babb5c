"""Image properties and extra specs about a guest's machine: one table each, from a name to the field that it sets.

Names and allowed values: Glance's useful image properties and Nova's extra specs (docs.openstack.org). Requirements on
the host's own processors, memory and devices are in :mod:`~nova.virt.libvirt.guest.numa_requirements`. A known property
has one of three results: it requests something; its value is wrong (Invalid: no host can help); or this driver does not
support it (HostRefused: it is never dropped silently). This driver ignores properties that are in no table.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from nova import errors
from nova.model.flavor.extra_specs import SPECS
from nova.model.image.image_properties import CHOICES, LOOSE
from nova.model.scheduling import address_space, image_flavor_conflicts


@dataclass(frozen=True, kw_only=True)
class RequestedProperties:
    """The requested properties; None where not set. ``names``: field -> the property or extra spec that set it."""

    names: Mapping[str, str] = field(default_factory=dict)
    architecture: str | None = None
    machine: str | None = None
    efi: bool | None = None
    secure_boot: str | None = None  # required, optional or disabled
    stateless: bool = False
    tpm_version: str | None = None
    tpm_model: str | None = None
    iommu: str | None = None  # intel, virtio, smmuv3 or auto
    address_mode: str | None = None
    address_bits: int | None = None
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

    def name_of(self, what: str) -> str:
        """Return the name of the property that set a field, for messages."""
        return self.names.get(what, what)


class PropertyField(NamedTuple):
    """A property that sets ``field`` (no field if empty) to the value that ``read`` parses from its text."""

    field: str
    read: Callable[[str], Any]


class UnsupportedProperty(NamedTuple):
    """A property that this driver does not support, unless its value is one of ``harmless``."""

    harmless: frozenset[str]
    reason: str


def _yes(text: str) -> bool:
    value = text.strip().lower()
    if value in ("yes", "true", "on", "1", "y", "t"):
        return True
    if value in ("no", "false", "off", "0", "n", "f"):
        return False
    raise ValueError("it is not a boolean")


def _count(text: str) -> int:
    if not text.strip().isdecimal():
        raise ValueError("it is not a number")
    return int(text)


def _some(text: str) -> int:
    number = _count(text)
    if number < 1:
        raise ValueError("it must be at least 1")
    return number


def _bits(text: str) -> int:
    number = _count(text)
    if not address_space.LEAST <= number <= address_space.MOST:
        raise ValueError(f"it must be from {address_space.LEAST} to {address_space.MOST}")
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
_TPM_MODEL, _TPM_VERSION = _of("tpm-tis", "tpm-crb"), _of("1.2", "2.0")
_IOMMU = _of("intel", "smmuv3", "virtio", "auto")
_ADDRESS_MODE = _of(*address_space.TRAITS)
_USB = _of("none", "nec-xhci", "qemu-xhci")
_SOUND = _of("sb16", "es1370", "pcspk", "ac97", "ich6", "ich9", "usb", "virtio")
_WATCHDOG = _of("none", "pause", "poweroff", "reset", "disabled")

IMAGE: dict[str, PropertyField] = {
    "hw_architecture": PropertyField("architecture", str),
    "hw_machine_type": PropertyField("machine", str),
    "hw_firmware_type": PropertyField("efi", _efi),
    "hw_firmware_stateless": PropertyField("stateless", _yes),
    "os_secure_boot": PropertyField("secure_boot", _of("required", "disabled", "optional")),
    "hw_tpm_version": PropertyField("tpm_version", _TPM_VERSION),
    "hw_tpm_model": PropertyField("tpm_model", _TPM_MODEL),
    "hw_viommu_model": PropertyField("iommu", _IOMMU),
    "hw_maxphysaddr_mode": PropertyField("address_mode", _ADDRESS_MODE),
    "hw_maxphysaddr_bits": PropertyField("address_bits", _bits),
    "hw_disk_bus": PropertyField("disk_bus", _of(*_BUSES)),
    "hw_cdrom_bus": PropertyField("cdrom_bus", _of(*_BUSES)),
    "hw_scsi_model": PropertyField("scsi_model", _of("virtio-scsi", "lsilogic", "lsisas1068", "lsisas1078")),
    "hw_vif_model": PropertyField("vif_model", _of("virtio", "e1000", "e1000e", "rtl8139", "ne2k_pci", "pcnet", "igb",
                                                   "vmxnet3")),
    "hw_vif_multiqueue_enabled": PropertyField("multiqueue", _yes),
    "hw_virtio_packed_ring": PropertyField("packed_ring", _yes),
    "hw_video_model": PropertyField("video_model", _of("virtio", "vga", "qxl", "cirrus", "vmvga", "bochs", "none")),
    "hw_video_ram": PropertyField("video_ram_mb", _some),
    "hw_pointer_model": PropertyField("pointer", _of("usbtablet")),
    "hw_input_bus": PropertyField("input_bus", _of("usb", "virtio")),
    "hw_rng_model": PropertyField("rng", _rng),
    "hw_watchdog_action": PropertyField("watchdog_action", _WATCHDOG),
    "hw_sound_model": PropertyField("sound_model", _SOUND),
    "hw_usb_model": PropertyField("usb_model", _USB),
    "hw_qemu_guest_agent": PropertyField("agent", _yes),
    "hw_serial_port_count": PropertyField("serial_ports", _ports),
    "hw_boot_menu": PropertyField("boot_menu", _yes),
    "hw_time_hpet": PropertyField("hpet", _yes),
    "hw_pmu": PropertyField("pmu", _yes),
    "hw_cpu_sockets": PropertyField("sockets", _some),
    "hw_cpu_cores": PropertyField("cores", _some),
    "hw_cpu_threads": PropertyField("threads", _some),
    "hw_cpu_max_sockets": PropertyField("max_sockets", _some),
    "hw_cpu_max_cores": PropertyField("max_cores", _some),
    "hw_cpu_max_threads": PropertyField("max_threads", _some),
    "img_hide_hypervisor_id": PropertyField("hide_hypervisor", _yes),
    "os_command_line": PropertyField("command_line", str),
    "os_type": PropertyField("os_type", _of("linux", "windows")),
    "hw_vm_mode": PropertyField("", _of("hvm")),
}

#: A flavor's value overrides its image's (except BOUNDED; see nova.model.scheduling.image_flavor_conflicts).
FLAVOR: dict[str, PropertyField] = {
    "hw:cpu_sockets": PropertyField("sockets", _some),
    "hw:cpu_cores": PropertyField("cores", _some),
    "hw:cpu_threads": PropertyField("threads", _some),
    "hw:cpu_max_sockets": PropertyField("max_sockets", _some),
    "hw:cpu_max_cores": PropertyField("max_cores", _some),
    "hw:cpu_max_threads": PropertyField("max_threads", _some),
    "hw:boot_menu": PropertyField("boot_menu", _yes),
    "hw:vif_multiqueue_enabled": PropertyField("multiqueue", _yes),
    "hw:virtio_packed_ring": PropertyField("packed_ring", _yes),
    "hw:pmu": PropertyField("pmu", _yes),
    "hw:serial_port_count": PropertyField("serial_ports", _ports),
    "os:secure_boot": PropertyField("secure_boot", _of("required", "disabled")),
    "hw:tpm_version": PropertyField("tpm_version", _TPM_VERSION),
    "hw:tpm_model": PropertyField("tpm_model", _TPM_MODEL),
    "hw:viommu_model": PropertyField("iommu", _IOMMU),
    "hw:maxphysaddr_mode": PropertyField("address_mode", _ADDRESS_MODE),
    "hw:maxphysaddr_bits": PropertyField("address_bits", _bits),
    "hw:watchdog_action": PropertyField("watchdog_action", _WATCHDOG),
    "hw:sound_model": PropertyField("sound_model", _SOUND),
    "hw:usb_model": PropertyField("usb_model", _USB),
    "hw:hide_hypervisor_id": PropertyField("hide_hypervisor", _yes),
    "hide_hypervisor_id": PropertyField("hide_hypervisor", _yes),
    "hw_rng:allowed": PropertyField("rng", _yes),
    "hw_rng:rate_bytes": PropertyField("rng_bytes", _count),
    "hw_rng:rate_period": PropertyField("rng_period_ms", _count),
    "hw_video:ram_max_mb": PropertyField("video_ram_max_mb", _count),
}

#: Fields for which a flavor sets only an upper bound; the image's value, if any, is used.
BOUNDED = ("serial_ports", "max_sockets", "max_cores", "max_threads")

NO = frozenset({"no", "false", "off", "0", "n", "f"})
_NOT_YET = "this release does not support it"

REFUSED: dict[str, UnsupportedProperty] = {
    **{name: UnsupportedProperty(NO, "disks on hosts are not encrypted in this release: use encrypted volumes")
       for name in ("hw:ephemeral_encryption", "hw_ephemeral_encryption")},
    **{name: UnsupportedProperty(frozenset({"0"}), "USB devices are not redirected to guests in this release")
       for name in ("hw:redirected_usb_ports", "hw_redirected_usb_ports")},
    **{name: UnsupportedProperty(frozenset(), _NOT_YET)
       for name in ("hw_emulation_architecture", "accel:device_profile")},
    "hw:pmem": UnsupportedProperty(frozenset(),
                                   "persistent memory is reported, but not attached to guests in this release"),
    "hw:tpm_secret_security": UnsupportedProperty(
        frozenset({"host"}), "TPM secrets are stored on the host (hw:tpm_secret_security=host) in this release, "
                             "not in the key manager"),
}

#: Old names of image properties that this driver accepts.
OLD_NAMES = {"architecture": "hw_architecture", "vm_mode": "hw_vm_mode"}


def requested_properties(image: Mapping[str, str], extra_specs: Mapping[str, str]) -> RequestedProperties:
    """Return the properties that image and flavor request together. Raises image.WrongProperty, or host.NoSuchGuest for
    a property that this driver does not support."""
    renamed = {OLD_NAMES.get(name, name): value for name, value in image.items()}
    for name, value in (*renamed.items(), *extra_specs.items()):
        _refuse_promise(name, value)
    of_image, of_flavor = _set_by(IMAGE, renamed.items()), _set_by(FLAVOR, extra_specs.items())
    contradiction = image_flavor_conflicts.conflict(renamed, extra_specs)
    if contradiction is not None:
        raise errors.image.WrongProperty(**contradiction._asdict())
    found = {**of_image,
             **{field: one for field, one in of_flavor.items() if field not in BOUNDED or field not in of_image}}
    return replace(RequestedProperties(), names={field: one.name for field, one in found.items()},
                   **{field: one.value for field, one in found.items()})


class _Said(NamedTuple):
    name: str
    value: Any


def _refuse_promise(name: str, value: str) -> None:
    promise = REFUSED.get(name)
    if promise is not None and value.strip().lower() not in promise.harmless:
        raise errors.host.NoSuchGuest(name=name, value=value, reason=promise.reason)


def _set_by(table: Mapping[str, PropertyField], given: Iterable[tuple[str, str]]) -> dict[str, _Said]:
    found = {}
    for name, value in given:
        row = table.get(name)
        if row is None:
            continue
        text = _canonical(name, value)
        try:
            read = row.read(text)
        except ValueError as error:
            if text in _elsewhere(name):
                raise errors.host.NoSuchGuest(name=name, value=value,
                                              reason="KVM and QEMU do not support it") from None
            raise errors.image.WrongProperty(name=name, value=value, reason=str(error)) from None
        if row.field:
            found[row.field] = _Said(name, read)
    return found


def _canonical(name: str, value: str) -> str:
    if name not in LOOSE:
        return value
    lower = value.strip().lower()
    return LOOSE[name].get(lower, lower)


def _elsewhere(name: str) -> tuple[str, ...]:
    """Return every value that any hypervisor driver accepts."""
    return SPECS[name][0].allowed if name in SPECS else CHOICES.get(name, ())
