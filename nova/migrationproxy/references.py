"""Validation of host resources in a migrating guest's definition. Free of I/O.

The definition comes from the source host. A malicious one would let libvirtd, which runs as root, open any file, run
any program as the emulator, or assign any device. So all parts that are not known to belong to the guest alone must
match what this host itself would give the guest (https://libvirt.org/formatdomain.html describes the elements).
"""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from collections.abc import Collection, Iterator
from typing import NamedTuple

from nova import failures

Element = ET.Element

#: Elements of a domain that belong to the guest alone, as long as no value in them is a path.
OWN = frozenset({"name", "uuid", "title", "description", "memory", "currentMemory", "features", "cpu", "clock", "pm",
                 "on_poweroff", "on_reboot", "on_crash", "memoryBacking", "iothreads"})
#: Elements with their own checks below.
LOOKED_AT = frozenset({"metadata", "sysinfo", "resource", "os", "vcpu", "cputune", "numatune", "seclabel", "devices"})
OS_PARTS = frozenset({"type", "boot", "bootmenu", "smbios", "firmware", "kernel", "initrd", "cmdline", "loader",
                      "nvram"})
#: Devices without host resources: by their element, the allowed types (None: any).
OWN_DEVICES = {"controller": None, "memballoon": None, "watchdog": None, "sound": None, "video": None, "iommu": None,
               "input": {"tablet", "mouse", "keyboard"}, "audio": {"none", "spice"}}
#: Attributes that these devices may have.
OWN_ATTRIBUTES = frozenset({
    "type", "index", "model", "ports", "vectors", "bus", "domain", "slot", "function", "multifunction", "port",
    "controller", "unit", "target", "chassis", "chassisNr", "busNr", "name", "heads", "primary", "ram", "vram",
    "vgamem", "vram64", "accel2d", "accel3d", "period", "action", "id", "autodeflate", "freePageReporting", "iommu",
    "ats", "packed", "queues", "intremap", "caching_mode", "iotlb", "eim", "aw_bits", "hotplug", "blob"})
#: Parts of other devices that belong to the guest alone.
OWN_PARTS = frozenset({"address", "alias", "boot", "model", "mtu", "link", "acpi", "bandwidth", "rate", "iotune",
                       "blockio", "readonly", "shareable", "serial", "image", "jpeg", "zlib", "playback", "streaming",
                       "mouse", "filetransfer", "clipboard", "mac"})
OWN_DRIVER = frozenset({"name", "type", "cache", "io", "discard", "detect_zeroes", "iommu", "ats", "packed", "queues",
                        "rx_queue_size", "tx_queue_size", "error_policy", "rerror_policy", "iothread"})
#: Firmware from packages, which is world-readable.
FIRMWARE = re.compile(r"/usr/share/[A-Za-z0-9._+/-]+")
EMULATOR = re.compile(r"/usr/(local/)?(bin|libexec)/(qemu-system-[a-z0-9_]+|qemu-kvm|kvm)")
#: Sources of random numbers that any guest may use.
RANDOM = frozenset({"/dev/urandom", "/dev/random", "/dev/hwrng"})
#: Types of a serial port or channel; those with a source must have one that this host assigns.
LINE_TYPES = frozenset({"tcp", "unix", "pty", "spicevmc", "null"})
NO_PORT = frozenset({"-1", "0"})
#: Attributes that libvirt adds to the source of a running guest.
OF_RUNNING = frozenset({"index", "startupPolicy"})


class Refused(Exception):
    """A request for a resource that does not belong to this migration."""


class Reference(NamedTuple):
    """A reference to a host resource: its device, its position in the device, and its attributes and text."""

    device: str
    part: str
    values: tuple[tuple[str, str], ...]

    def __str__(self) -> str:
        shown = " ".join(f"{name}={value!r}" for name, value in self.values)
        return f"{self.device}/{self.part} {shown}"[:300]


def parsed(text: str) -> Element:
    """Parse XML. Raises Refused if it is malformed, or has a document type (entities)."""
    with failures.translated((ET.ParseError, ValueError), lambda error: Refused(f"XML that cannot be read ({error})")):
        if "<!" in text:
            raise Refused("XML with declarations")
        return ET.fromstring(text)


def name_of(text: str) -> str:
    """Return libvirt's name of the guest."""
    return parsed(text).findtext("name", "")


def check(given: str, ours: str) -> None:
    """Check a definition. Raises Refused, which names a resource in ``given`` that this host does not give the guest.
    ``ours``: the definition by this host."""
    check_domain(parsed(given), ours)


def check_domain(domain: Element, ours: str) -> None:
    """Check a parsed definition, likewise."""
    own = parsed(ours)
    for name in ("uuid", "name"):
        if domain.findtext(name) != own.findtext(name):
            raise Refused(f"the {name} is {str(domain.findtext(name))[:100]!r}")
    for part in domain:
        if part.tag in OWN:
            _check_no_path(part)
        elif part.tag not in LOOKED_AT:
            raise Refused(f"the element {part.tag}")
    _check_small(domain)
    _check_os(_only(domain, "os"), own.find("os"))
    _check_processors(domain, own)
    ours_there = frozenset(_references(own))
    for one in _references(domain):
        if one not in ours_there:
            raise Refused(str(one))


# --- parts other than devices

def _check_small(domain: Element) -> None:
    for sysinfo in domain.iterfind("sysinfo"):
        if sysinfo.get("type") != "smbios" or any(set(one.attrib) - {"name"} for one in sysinfo.iter("entry")):
            raise Refused("sysinfo of another type than SMBIOS")
        _check_no_path(sysinfo)
    for partition in domain.iterfind("resource/*"):
        if partition.tag != "partition" or partition.text != "/machine":
            raise Refused(f"the resource {partition.tag} {partition.text!r}")
    for label in domain.iterfind("seclabel"):
        if label.get("type") != "dynamic" or label.get("relabel", "yes") != "yes" or len(label):
            raise Refused("a security label of the source")


def _check_os(given: Element, own: Element | None) -> None:
    for part in given:
        text, there = part.text or "", own.find(part.tag) if own is not None else None
        if part.tag not in OS_PARTS or len(part) and part.tag != "firmware":
            raise Refused(f"os/{part.tag}")
        if part.tag == "loader":
            allowed = not text or _is_firmware(text)
        elif part.tag in ("kernel", "initrd", "cmdline", "nvram"):
            allowed = there is not None and text == there.text
        else:
            allowed = True
            _check_no_path(part)
        template = part.get("template")
        if not allowed or (template is not None and not _is_firmware(template)):
            raise Refused(f"os/{part.tag} {template or ''} {text[:200]!r}")


def _check_processors(domain: Element, own: Element) -> None:
    """Check that the guest uses only the processors and NUMA cells that this host assigned; other tuning is free."""
    ours = {(one.tag, name, _numbers(one.get(name, ""))) for one in own.iter() for name in ("cpuset", "nodeset")
            if name in one.attrib}
    for tag in ("vcpu", "cputune", "numatune"):
        for one in (inner for part in domain.iterfind(tag) for inner in part.iter()):
            for name in ("cpuset", "nodeset"):
                if name in one.attrib and (one.tag, name, _numbers(one.get(name, ""))) not in ours:
                    raise Refused(f"{one.tag} {name}={one.get(name)!r}")


# --- the devices

def _references(domain: Element) -> Iterator[Reference]:
    """Yield all references to host resources. Raises Refused for a device, or a part of one, that no guest of nova
    has."""
    for device in domain.iterfind("devices/*"):
        if device.tag in OWN_DEVICES:
            _check_own_device(device)
        elif device.tag == "emulator":
            if not EMULATOR.fullmatch(device.text or ""):
                raise Refused(f"the emulator {device.text!r}")
        elif device.tag in LOOKS:
            yield from LOOKS[device.tag](device)
        else:
            raise Refused(f"a device {device.tag}")


def _check_own_device(device: Element) -> None:
    types = OWN_DEVICES[device.tag]
    if types is not None and device.get("type") not in types:
        raise Refused(f"{device.tag} of type {device.get('type')!r}")
    for one in device.iter():
        unknown = set(one.attrib) - OWN_ATTRIBUTES
        if unknown or one.tag == "source":
            raise Refused(f"{device.tag}/{one.tag} {' '.join(sorted(unknown))}")
    _check_no_path(device)


def _disk(disk: Element) -> Iterator[Reference]:
    """Yield a disk with its whole backing chain as one reference: libvirt must not probe files to find the chain."""
    parts, driver = _parts(disk, {"source", "backingStore", "target", "driver", "auth"}), disk.find("driver")
    format_ = driver.get("type", "") if driver is not None else ""
    chain = [("type", disk.get("type", "")), ("device", disk.get("device", "disk")), ("format", format_),
             *_all_values(disk.find("source"))]
    backing = disk.find("backingStore")
    if backing is None and format_ not in ("", "raw"):
        raise Refused("a disk without a complete backing chain")
    while backing is not None and len(backing):
        if {one.tag for one in backing} - {"format", "source", "backingStore"}:
            raise Refused("a disk with an unknown element in its backing chain")
        chain += [("over", backing.get("type", "")), *_all_values(backing.find("format")),
                  *_all_values(backing.find("source"))]
        backing = backing.find("backingStore")
        if backing is None:
            raise Refused("a disk with an open backing chain")
    target = disk.find("target")
    yield Reference("disk", target.get("dev", "") if target is not None else "", tuple(chain))
    yield from (Reference("disk", "auth", _values(inner)) for part in parts if part.tag == "auth"
                for inner in part.iter())


def _interface(interface: Element) -> Iterator[Reference]:
    mac = interface.find("mac")
    where = f"interface {mac.get('address', '').lower() if mac is not None else ''}"
    yield Reference(where, "type", (("type", interface.get("type", "")),))
    for part in _parts(interface, {"source", "target", "virtualport", "vlan", "driver"}):
        if part.tag != "driver":
            yield from (Reference(where, part.tag, _values(one)) for one in part.iter() if one.attrib or one.text)


def _line(line: Element) -> Iterator[Reference]:
    """Yield the references of a serial port, of the console for it, or of a channel to the guest."""
    kind, type_ = "channel" if line.tag == "channel" else "serial", line.get("type", "")
    if type_ not in LINE_TYPES:
        raise Refused(f"{line.tag} of type {type_!r}")
    for part in _parts(line, {"source", "protocol", "log", "target"}):
        if part.tag in ("source", "log"):
            yield Reference(kind, part.tag, (("line", type_), *_all_values(part)))


def _screen(graphics: Element) -> Iterator[Reference]:
    kind = f"graphics {graphics.get('type')}"
    yield Reference(kind, "type", (("type", graphics.get("type", "")),))
    for name in ("port", "tlsPort", "websocket"):
        if graphics.get(name, "-1") not in NO_PORT and graphics.get("autoport") != "yes":
            raise Refused(f"{kind} on port {graphics.get(name)}")
    if "socket" in graphics.attrib:
        raise Refused(f"{kind} on the socket {graphics.get('socket')!r}")
    addresses = {graphics.get("listen")} - {None}
    for part in _parts(graphics, {"listen"}):
        if part.get("type") != "address":
            raise Refused(f"{kind} that listens on {part.get('type')}")
        addresses.add(part.get("address"))
    yield from (Reference(kind, "listen", (("address", address or ""),)) for address in addresses)


def _tpm(tpm: Element) -> Iterator[Reference]:
    for part in _parts(tpm, {"backend"}):
        if part.get("type") != "emulator":
            raise Refused(f"a TPM of type {part.get('type')!r}")
        for inner in part:
            if inner.tag not in ("encryption", "active_pcr_banks", "profile"):
                raise Refused(f"tpm/backend/{inner.tag}")
            if inner.tag == "encryption":
                yield Reference("tpm", "encryption", _values(inner))


def _rng(rng: Element) -> Iterator[Reference]:
    for part in _parts(rng, {"backend", "driver"}):
        if part.tag == "backend" and (len(part) or part.get("model") != "random" or part.text not in RANDOM):
            yield Reference("rng", "backend", _all_values(part))


#: Checks of devices with host resources, by element.
LOOKS = {"disk": _disk, "interface": _interface, "serial": _line, "console": _line, "channel": _line,
         "graphics": _screen, "tpm": _tpm, "rng": _rng}


# --- shared functions

def _parts(device: Element, looked_at: Collection[str]) -> list[Element]:
    """Return the parts of a device that its check handles. Raises Refused for others that do not belong to the guest
    alone."""
    found = []
    for part in device:
        if part.tag in looked_at:
            if part.tag == "driver" and set(part.attrib) - OWN_DRIVER:
                raise Refused(f"{device.tag}/driver {' '.join(sorted(set(part.attrib) - OWN_DRIVER))}")
            found.append(part)
        elif part.tag in OWN_PARTS:
            _check_no_path(part)
        else:
            raise Refused(f"{device.tag}/{part.tag}")
    return found


def _values(element: Element | None) -> tuple[tuple[str, str], ...]:
    if element is None:
        return ()
    named = sorted((name, value) for name, value in element.attrib.items() if name not in OF_RUNNING)
    text = (element.text or "").strip()
    return (*named, ("text", text)) if text else tuple(named)


def _all_values(element: Element | None) -> tuple[tuple[str, str], ...]:
    """Return the values of an element and of its descendants."""
    return () if element is None else tuple((f"{one.tag} {name}" if one is not element else name, value)
                                            for one in element.iter() for name, value in _values(one))


def _check_no_path(element: Element) -> None:
    for one in element.iter():
        for value in (*one.attrib.values(), one.text or ""):
            if "/" in value:
                raise Refused(f"{element.tag}: {value[:200]!r}")


def _is_firmware(path: str) -> bool:
    return FIRMWARE.fullmatch(path) is not None and ".." not in path.split("/")


def _numbers(text: str) -> frozenset[int]:
    """Return a set of numbers, which libvirt can write in several ways: 0-2,^1 or 0,2."""
    found: set[int] = set()
    for part in text.split(","):
        first, _, last = part.removeprefix("^").partition("-")
        if not first.isdecimal() or not (last or first).isdecimal() or int(last or first) > 65535:
            raise Refused(f"processors {text[:100]!r}")
        numbers = range(int(first), int(last or first) + 1)
        found = found - set(numbers) if part.startswith("^") else found | set(numbers)
    return frozenset(found)


def _only(domain: Element, tag: str) -> Element:
    found = domain.findall(tag)
    if len(found) != 1:
        raise Refused(f"{len(found)} elements {tag}")
    return found[0]
