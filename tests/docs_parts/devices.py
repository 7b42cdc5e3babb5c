"""The page of guests' devices, from the tables of ``nova.virt.libvirt``."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

from nova.model.flavor.extra_specs import SPECS, ExtraSpecRule
from nova.model.image import image_properties
from nova.virt.libvirt.guest import devices, rescue
from nova.virt.libvirt.guest.disk_devices import THROTTLES
from nova.virt.libvirt.guest.numa_requirements import PROMISES
from nova.virt.libvirt.guest.processor import TUNING
from nova.virt.libvirt.properties import FLAVOR, IMAGE, REFUSED, Sets
from nova.virt.libvirt.vifs.common import BANDWIDTH, MOST_QUEUES
from tests.docs_parts import rst

INTRO = """\
What images and flavors may ask of a guest's machine, and what the libvirt driver makes of it. How to set them, what is
chosen where nothing is asked, and what hosts need is in `guests' devices <../devices.rst>`_.

Names with ``hw_``, ``os_`` and ``img_`` are properties of images, those with a colon are extra specs of flavors. A
value that is none of those here is refused: by the API where no driver has it, else by the host. A property that is in
no table has no meaning to this driver.
"""

REFUSED_INTRO = """\
These are known and not supported: a host refuses the guest, and does not run it without the feature. The values in the
second column ask for nothing, and are accepted.
"""

QUOTA_INTRO = """\
Extra specs that bound what a guest takes. 0 bounds no disk.
"""

HELD_INTRO = """\
What a guest asks of its host's own processors, memory and devices. The claim decides what it gets; a host builds no
guest whose order does not keep what is asked (the values in the second column ask for nothing). Options: see `devices
<../devices.rst>`_.
"""

#: Sections, each of properties (fields of ``properties.RequestedProperties``): what one is, and what it takes.
SECTIONS: Mapping[str, Mapping[str, str]] = {
    "Machine and firmware": {
        "architecture": "The guest's processor: the host's own; on x86_64 also i686.",
        "machine": "A machine type of the host's QEMU (``qemu-system-x86_64 -machine help``).",
        "efi": "Firmware. UEFI takes the package ovmf.",
        "secure_boot": "Needs q35 (or virt), and firmware with enrolled keys (package ovmf). Where it is required, "
                       "UEFI comes with it, and q35 unless another machine type is named; optional takes it when there "
                       "is UEFI anyway and the host can.",
        "stateless": "UEFI that keeps no variables. Needs UEFI, and firmware that can: "
                     "its description has ``\"mode\": \"stateless\"``.",
        "tpm_version": "An emulated TPM. Needs ``[libvirt]swtpm_enabled`` and the packages swtpm and swtpm-tools.",
        "tpm_model": "Its model; without one tpm-crb for 2.0, tpm-tis for 1.2. Needs a version.",
        "iommu": "An IOMMU. intel needs q35, smmuv3 virt, virtio either; auto is virtio. Without a machine type "
                 "in the request, the guest gets a suitable type.",
        "boot_menu": "The firmware shows a boot menu.",
        "command_line": "Of the kernel, for images with a ``kernel_id``.",
        "": "Full virtualization is all there is.",
        "os_type": "windows: local time, and with KVM what Windows knows of hypervisors (Hyper-V).",
    },
    "Processor": {
        "sockets": "Requested arrangement of the flavor's vcpus; the guest gets the nearest possible arrangement.",
        "cores": "Cores a socket.",
        "threads": "Threads a core.",
        "max_sockets": "Bound of the arrangement; an image may not ask for more than its flavor's.",
        "max_cores": "Bound of the cores.",
        "max_threads": "Bound of the threads.",
        "address_mode": "Bits of physical addresses: the host's (passthrough), or as many as told (emulate). Needs KVM "
                        "and libvirt 8.7; passthrough needs ``cpu_mode = host-passthrough``.",
        "address_bits": "How many bits the host must have at least, and the guest has with emulate. Needs a mode.",
        "pmu": "Performance counters.",
        "hpet": "The timer HPET (x86).",
        "hide_hypervisor": "Not to show that it is KVM.",
    },
    "Disks and interfaces": {
        "disk_bus": "Of its disks; virtio otherwise. The machine type must have it: q35 has no ide.",
        "cdrom_bus": "Of CD-ROMs; otherwise sata with q35, scsi with virt, else ide.",
        "scsi_model": "Of the SCSI controller, for disks on scsi; virtio-scsi otherwise.",
        "vif_model": "Of its interfaces; virtio otherwise. igb needs QEMU 8.0.",
        "multiqueue": f"As many queues a virtio interface as vcpus, {MOST_QUEUES} at most.",
        "packed_ring": "Packed rings of virtio disks and interfaces.",
    },
    "Other devices": {
        "video_model": "Of its screen; virtio otherwise, where ``[vnc]enabled``.",
        "video_ram_mb": "MB of the video device, up to what the flavor allows.",
        "video_ram_max_mb": "The most MB that an image may ask for. Without it an image may ask for none.",
        "pointer": "A pointer that follows the viewer's.",
        "input_bus": "Of that pointer.",
        "rng": "The random number device. It is there unless the flavor says no.",
        "rng_bytes": "Bytes that the guest may draw in a period; 0: no bound.",
        "rng_period_ms": "That period, in milliseconds.",
        "watchdog_action": "A watchdog (i6300esb), and what happens when it is not fed. disabled: no watchdog.",
        "sound_model": "A sound device; none otherwise. virtio needs QEMU 8.2.",
        "usb_model": "The USB controller; none takes USB and the tablet away.",
        "agent": "A channel for the QEMU guest agent. The agent itself is the image's.",
        "serial_ports": "Number of serial ports; 1 otherwise. The first writes the console log. An image may ask for "
                        "as many as its flavor says.",
    },
}

#: What says something without requesting anything.
OTHERS = {
    "hw_rescue_device": (f"one of {', '.join(rescue.DEVICES)}", "Of a rescue image: the server's own disks keep their "
                         "places, and the rescue disk comes after them as such a device."),
    "hw_rescue_bus": ("ide, sata, scsi, usb or virtio; fdc for a floppy", "The same; the rescue disk's bus."),
    "os_require_quiesce": ("yes or no", "A snapshot of the running guest fails when its file systems can't be frozen."),
    "os_admin_user": ("a name", "Whose password is set; root otherwise, Administrator on Windows."),
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
    """Of the first of each: the others are other names of it."""
    asked = [_image_values(name, IMAGE[name].read) for name in image[:1]]
    given = [_spec_values(SPECS[name][0], FLAVOR[name].read) for name in flavor[:1]]
    both = list(dict.fromkeys(["; ".join(asked), "; ".join(given)]))
    if asked and given and set(asked[0].split(", ")) != set(given[0].split(", ")):
        return f"image: {both[0]}; flavor: {both[1]}"
    return next(filter(None, both))


def _named(table: Mapping[str, Sets], field: str) -> list[str]:
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
    """What the reader takes, found by asking it."""
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
    """Properties that no section tells of; sections that tell of none."""
    described = {field for fields in SECTIONS.values() for field in fields}
    return described ^ {row.field for row in (*IMAGE.values(), *FLAVOR.values())}


def newer() -> dict[str, str]:
    """Models that need a newer QEMU than others, with its version as the page's texts have it."""
    return {field: f"{model} needs QEMU {version // 1_000_000}.{version // 1000 % 1000}"
            for (field, model), version in devices.SINCE.items()}
