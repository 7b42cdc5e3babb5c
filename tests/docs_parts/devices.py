"""The page of guests' devices, from the tables of ``nova.virt.libvirt``."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

from nova.model.flavor.extra_specs import SPECS, ExtraSpecRule
from nova.model.image import image_properties
from nova.virt.libvirt.guest import devices, rescue
from nova.virt.libvirt.guest.disk_devices import THROTTLES
from nova.virt.libvirt.guest.numa_requirements import PROMISES
from nova.virt.libvirt.guest.processor import TUNING
from nova.virt.libvirt.properties import FLAVOR, IMAGE, REFUSED, PropertyField
from nova.virt.libvirt.vifs.common import BANDWIDTH, MOST_QUEUES
from tests.docs_parts import rst

INTRO = """\
Properties of images and extra specs of flavors that configure a guest's virtual hardware, for the libvirt driver.
`Guests' devices <../devices.rst>`_ describes how to set them, their defaults, and the requirements of hosts.

Names with ``hw_``, ``os_`` and ``img_`` are properties of images; names with a colon are extra specs of flavors. Values
that are not listed are refused: by the API if no driver supports them, otherwise by the host. This driver ignores
properties that are not in these tables.
"""

REFUSED_INTRO = """\
These properties are known but not supported: a host refuses the guest instead of running it without the feature. The
values in the second column request nothing and are accepted.
"""

QUOTA_INTRO = """\
Extra specs that limit a guest's use of resources. For disks, 0 means unlimited.
"""

HELD_INTRO = """\
Requirements of a guest for its host's processors, memory and devices. The claim assigns them; a host does not build a
guest if the claim does not satisfy its requirements (the values in the second column request nothing). Options: see
`devices <../devices.rst>`_.
"""

#: Sections of properties (fields of ``properties.RequestedProperties``): the meaning and the requirements of each.
SECTIONS: Mapping[str, Mapping[str, str]] = {
    "Machine and firmware": {
        "architecture": "The guest's processor: the host's own; on x86_64 also i686.",
        "machine": "A machine type of the host's QEMU (``qemu-system-x86_64 -machine help``).",
        "efi": "Firmware. UEFI needs the package ovmf.",
        "secure_boot": "Needs q35 (or virt), and firmware with enrolled keys (package ovmf). ``required`` "
                       "also selects UEFI, and q35 unless another machine type is requested. ``optional`` enables it "
                       "if the guest has UEFI anyway and the host supports it.",
        "stateless": "UEFI without stored variables. Needs UEFI, and firmware with support for it: "
                     "its description has ``\"mode\": \"stateless\"``.",
        "tpm_version": "An emulated TPM. Needs ``[libvirt]swtpm_enabled`` and the packages swtpm and swtpm-tools.",
        "tpm_model": "Its model; without one tpm-crb for 2.0, tpm-tis for 1.2. Needs a version.",
        "iommu": "An IOMMU. intel needs q35, smmuv3 virt, virtio either; auto is virtio. Without a machine type "
                 "in the request, the guest gets a suitable type.",
        "boot_menu": "The firmware shows a boot menu.",
        "command_line": "Kernel command line, for images with a ``kernel_id``.",
        "": "Only full virtualization is supported.",
        "os_type": "windows: local time, and with KVM the Hyper-V features that Windows uses.",
    },
    "Processor": {
        "sockets": "Requested arrangement of the flavor's vcpus; the guest gets the nearest possible arrangement.",
        "cores": "Cores per socket.",
        "threads": "Threads per core.",
        "max_sockets": "Maximum number of sockets; an image may not exceed its flavor's.",
        "max_cores": "Maximum number of cores.",
        "max_threads": "Maximum number of threads.",
        "address_mode": "Bits of physical addresses: the host's (passthrough), or a given number (emulate). Needs KVM "
                        "and libvirt 8.7; passthrough needs ``cpu_mode = host-passthrough``.",
        "address_bits": "Minimum number of bits of the host, and with emulate the guest's number. Needs a mode.",
        "pmu": "Performance counters.",
        "hpet": "The timer HPET (x86).",
        "hide_hypervisor": "Hide KVM from the guest.",
    },
    "Disks and interfaces": {
        "disk_bus": "Bus of the disks; default: virtio. The machine type must have it: q35 has no ide.",
        "cdrom_bus": "Bus of CD-ROMs; default: sata with q35, scsi with virt, ide with others.",
        "scsi_model": "Model of the SCSI controller, for disks on scsi; default: virtio-scsi.",
        "vif_model": "Model of the interfaces; default: virtio. igb needs QEMU 8.0.",
        "multiqueue": f"One queue per vcpu for each virtio interface, at most {MOST_QUEUES}.",
        "packed_ring": "Packed rings of virtio disks and interfaces.",
    },
    "Other devices": {
        "video_model": "Model of the video device; default: virtio, if ``[vnc]enabled``.",
        "video_ram_mb": "Memory of the video device in MB, up to the flavor's limit.",
        "video_ram_max_mb": "Maximum memory of the video device in MB that an image may request; default: none.",
        "pointer": "A pointer that follows the viewer's.",
        "input_bus": "Bus of this pointer.",
        "rng": "The random number device, which guests have unless the flavor disables it.",
        "rng_bytes": "Bytes that the guest may read in a period; 0: unlimited.",
        "rng_period_ms": "The period of the limit, in milliseconds.",
        "watchdog_action": "A watchdog (i6300esb), and its action when it expires. disabled: no watchdog.",
        "sound_model": "A sound device; default: none. virtio needs QEMU 8.2.",
        "usb_model": "The USB controller; none removes USB and the tablet.",
        "agent": "A channel for the QEMU guest agent. The image must contain the agent.",
        "serial_ports": "Number of serial ports; default: 1. The console log is from the first. An image may request "
                        "as many as its flavor allows.",
    },
}

#: Properties that configure actions and request no device.
OTHERS = {
    "hw_rescue_device": (f"one of {', '.join(rescue.DEVICES)}", "For rescue images: the server's own disks keep their "
                         "places, and the rescue disk is added after them as this device."),
    "hw_rescue_bus": ("ide, sata, scsi, usb or virtio; fdc for a floppy", "For rescue images: the rescue disk's bus."),
    "os_require_quiesce": ("yes or no", "A snapshot of the running guest fails if its file systems cannot be frozen."),
    "os_admin_user": ("a name", "User whose password is set; default: root, or Administrator on Windows."),
    "img_config_drive": ("optional or mandatory", "mandatory: the server gets a config drive."),
}

Names = dict[str, list[str]]


def page() -> str:
    parts = [rst.MARK, rst.heading("Properties of guests' devices"), INTRO]
    for title, fields in SECTIONS.items():
        parts += [rst.heading(title, "-"), _table(_rows(fields))]
    others = [(rst.literal(name), "", values, text) for name, (values, text) in OTHERS.items()]
    parts += [rst.heading("What actions look at", "-"), _table(others), rst.heading("Bounds", "-"), QUOTA_INTRO,
              rst.table(("Extra spec", "Values", "What it is"), _quotas(), (34, 26, 40)),
              rst.heading("Not to be had", "-"), REFUSED_INTRO,
              rst.table(("Name", "Accepted", "Why not"), _refused(), (34, 20, 46))]
    parts += [rst.heading("Of the host's own", "-"), HELD_INTRO,
              rst.table(("Name", "Asks for nothing", "What it is"), _held(), (34, 20, 46))]
    return "\n".join(parts)


def _held() -> Iterator[tuple[str, ...]]:
    for name, promise in PROMISES.items():
        harmless = "no" if "no" in promise.harmless else ", ".join(sorted(promise.harmless)) or "nothing"
        meaning = SPECS[name][1] if name in SPECS else f"The same, of an image, as {name.replace('hw_', 'hw:', 1)}"
        yield rst.literal(name), harmless, rst.plain(meaning)


def _table(rows: Iterable[tuple[str, ...]]) -> str:
    return rst.table(("Image property", "Extra spec", "Values", "What it is"), rows, (22, 22, 20, 36))


def _rows(fields: Mapping[str, str]) -> Iterator[tuple[str, ...]]:
    for field, text in fields.items():
        image, flavor = _named(IMAGE, field), _named(FLAVOR, field)
        yield (", ".join(map(rst.literal, image)), ", ".join(map(rst.literal, flavor)), _values(image, flavor), text)


def _values(image: list[str], flavor: list[str]) -> str:
    """Return the values of the first name of each kind: the other names are aliases."""
    asked = [_image_values(name, IMAGE[name].read) for name in image[:1]]
    given = [_spec_values(SPECS[name][0], FLAVOR[name].read) for name in flavor[:1]]
    both = list(dict.fromkeys(["; ".join(asked), "; ".join(given)]))
    if asked and given and set(asked[0].split(", ")) != set(given[0].split(", ")):
        return f"image: {both[0]}; flavor: {both[1]}"
    return next(filter(None, both))


def _named(table: Mapping[str, PropertyField], field: str) -> list[str]:
    return [name for name, row in table.items() if row.field == field]


def _image_values(name: str, read: Callable[[str], object]) -> str:
    if name in image_properties.CHOICES and read is not str:
        return _accepted(image_properties.CHOICES[name], read)
    if name in image_properties.BOOLEANS:
        return "yes or no"
    if name in image_properties.INTEGERS:
        return _numbers(read)
    return "one of the host's" if name == "hw_architecture" else "text"


def _spec_values(rule: ExtraSpecRule, read: Callable[[str], object]) -> str:
    if rule.allowed:
        return _accepted(rule.allowed, read)
    return "yes or no" if rule.type == "boolean" else _numbers(read)


def _accepted(choices: Iterable[str], read: Callable[[str], object]) -> str:
    return ", ".join(rst.literal(one) for one in choices if _accepts(read, one))


def _numbers(read: Callable[[str], object]) -> str:
    """Return the numbers that the reader accepts, found by trying it."""
    least = next(number for number in range(65) if _accepts(read, str(number)))
    most = next((number for number in range(least, 65) if not _accepts(read, str(number + 1))), None)
    return f"a number from {least}" if most is None else f"{least} to {most}"


def _accepts(read: Callable[[str], object], text: str) -> bool:
    try:
        read(text)
    except ValueError:
        return False
    return True


def _quotas() -> Iterator[tuple[str, ...]]:
    for name, (_element, least, most) in TUNING.items():
        yield rst.literal(name), f"{least} to {most}", rst.plain(SPECS[name][1])
    for name in THROTTLES:
        yield rst.literal(name), "a number", rst.plain(SPECS[name][1])
    for direction in ("inbound", "outbound"):
        for amount in BANDWIDTH:
            name = f"quota:vif_{direction}_{amount}"
            more = "" if amount == "average" else "; needs the average, too"
            yield rst.literal(name), "a number", rst.plain(SPECS[name][1] + more)


def _refused() -> Iterator[tuple[str, ...]]:
    for name, promise in REFUSED.items():
        harmless = "no" if "no" in promise.harmless else ", ".join(sorted(promise.harmless)) or "nothing"
        yield rst.literal(name), harmless, rst.plain(promise.reason)


def undescribed() -> set[str]:
    """Return properties without a section, and fields of sections without a property."""
    described = {field for fields in SECTIONS.values() for field in fields}
    return described ^ {row.field for row in (*IMAGE.values(), *FLAVOR.values())}


def newer() -> dict[str, str]:
    """Return the models that need a newer QEMU than others, with its version in the form of the page's texts."""
    return {field: f"{model} needs QEMU {version // 1_000_000}.{version // 1000 % 1000}"
            for (field, model), version in devices.SINCE.items()}
