"""What a guest's definition points to on its host. Pure.

The definition of a guest that comes is its source's word: with it libvirtd, which is root, would open any file, run any
program as the emulator, or hand over any device. So all that is not known to be the guest's own affair must be what
this host would give the guest itself (https://libvirt.org/formatdomain.html has the elements).
"""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from collections.abc import Collection, Iterator
from typing import NamedTuple

Element = ET.Element

#: Elements of a domain whose whole content is the guest's own affair, as long as no value in it is a path.
OWN = frozenset({"name", "uuid", "title", "description", "memory", "currentMemory", "features", "cpu", "clock", "pm",
                 "on_poweroff", "on_reboot", "on_crash", "memoryBacking", "iothreads"})
#: Those that are looked at more closely below.
LOOKED_AT = frozenset({"metadata", "sysinfo", "resource", "os", "vcpu", "cputune", "numatune", "seclabel", "devices"})
OS_PARTS = frozenset({"type", "boot", "bootmenu", "smbios", "firmware", "kernel", "initrd", "cmdline", "loader",
                      "nvram"})
#: Devices that have nothing of the host's: by their element, their types (None: any).
OWN_DEVICES = {"controller": None, "memballoon": None, "watchdog": None, "sound": None, "video": None, "iommu": None,
               "input": {"tablet", "mouse", "keyboard"}, "audio": {"none", "spice"}}
#: The attributes that these may have.
OWN_ATTRIBUTES = frozenset({
    "type", "index", "model", "ports", "vectors", "bus", "domain", "slot", "function", "multifunction", "port",
    "controller", "unit", "target", "chassis", "chassisNr", "busNr", "name", "heads", "primary", "ram", "vram",
    "vgamem", "vram64", "accel2d", "accel3d", "period", "action", "id", "autodeflate", "freePageReporting", "iommu",
    "ats", "packed", "queues", "intremap", "caching_mode", "iotlb", "eim", "aw_bits", "hotplug", "blob"})
#: Of other devices: parts that are the guest's own affair.
OWN_PARTS = frozenset({"address", "alias", "boot", "model", "mtu", "link", "acpi", "bandwidth", "rate", "iotune",
                       "blockio", "readonly", "shareable", "serial", "image", "jpeg", "zlib", "playback", "streaming",
                       "mouse", "filetransfer", "clipboard", "mac"})
OWN_DRIVER = frozenset({"name", "type", "cache", "io", "discard", "detect_zeroes", "iommu", "ats", "packed", "queues",
                        "rx_queue_size", "tx_queue_size", "error_policy", "rerror_policy", "iothread"})
#: Firmware that packages bring: everybody may read it.
FIRMWARE = re.compile(r"/usr/share/[A-Za-z0-9._+/-]+")
EMULATOR = re.compile(r"/usr/(local/)?(bin|libexec)/(qemu-system-[a-z0-9_]+|qemu-kvm|kvm)")
#: Sources of random numbers, which any guest may have.
RANDOM = frozenset({"/dev/urandom", "/dev/random", "/dev/hwrng"})
#: How a serial port or channel may be served; those with a source have one that this host gives.
LINE_TYPES = frozenset({"tcp", "unix", "pty", "spicevmc", "null"})
NO_PORT = frozenset({"-1", "0"})
#: Attributes that libvirt adds to a source that runs.
OF_RUNNING = frozenset({"index", "startupPolicy"})


class Refused(Exception):
    """What was asked for, and is not this migration's."""


class Reference(NamedTuple):
    """One thing of the host's: whose it is, where it stands in there, and its attributes and text."""

    device: str
    part: str
    values: tuple[tuple[str, str], ...]

    def __str__(self) -> str:
        shown = " ".join(f"{name}={value!r}" for name, value in self.values)
        return f"{self.device}/{self.part} {shown}"[:300]


def parsed(text: str) -> Element:
    """Refused: it is no XML, or has a document type (entities)."""
    try:
        if "<!" in text:
            raise Refused("XML with declarations")
        return ET.fromstring(text)
    except (ET.ParseError, ValueError) as error:
        raise Refused(f"XML that cannot be read ({error})") from error


def name_of(text: str) -> str:
    """libvirt's name of the guest."""
    return parsed(text).findtext("name", "")


def check(given: str, ours: str) -> None:
    """Refused, which names what of ``given`` this host does not give the guest. ``ours``: as it would define it."""
    check_domain(parsed(given), ours)


def check_domain(domain: Element, ours: str) -> None:
    """The same for what was read already."""
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


# --- beside the devices

def _check_small(domain: Element) -> None:
    for sysinfo in domain.iterfind("sysinfo"):
        if sysinfo.get("type") != "smbios" or any(set(one.attrib) - {"name"} for one in sysinfo.iter("entry")):
            raise Refused("sysinfo that is not SMBIOS'")
        _check_no_path(sysinfo)
    for partition in domain.iterfind("resource/*"):
        if partition.tag != "partition" or partition.text != "/machine":
            raise Refused(f"the resource {partition.tag} {partition.text!r}")
    for label in domain.iterfind("seclabel"):
        if label.get("type") != "dynamic" or label.get("relabel", "yes") != "yes" or len(label):
            raise Refused("a security label of its own")


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
    """A guest stays on the processors and in the cells that it was given here; the rest of its tuning is its own."""
    ours = {(one.tag, name, _numbers(one.get(name, ""))) for one in own.iter() for name in ("cpuset", "nodeset")
            if name in one.attrib}
    for tag in ("vcpu", "cputune", "numatune"):
        for one in (inner for part in domain.iterfind(tag) for inner in part.iter()):
            for name in ("cpuset", "nodeset"):
                if name in one.attrib and (one.tag, name, _numbers(one.get(name, ""))) not in ours:
                    raise Refused(f"{one.tag} {name}={one.get(name)!r}")


# --- the devices

def _references(domain: Element) -> Iterator[Reference]:
    """All that the devices have of the host. Refused: a device, or a part of one, that no guest of ours has."""
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
    """A disk with all that lies under it is one reference: libvirt must look into no file to find what that is."""
    parts, driver = _parts(disk, {"source", "backingStore", "target", "driver", "auth"}), disk.find("driver")
    format_ = driver.get("type", "") if driver is not None else ""
    chain = [("type", disk.get("type", "")), ("device", disk.get("device", "disk")), ("format", format_),
             *_all_values(disk.find("source"))]
    backing = disk.find("backingStore")
    if backing is None and format_ not in ("", "raw"):
        raise Refused("a disk that does not say what it lies over")
    while backing is not None and len(backing):
        if {one.tag for one in backing} - {"format", "source", "backingStore"}:
            raise Refused("a disk over a store of its own kind")
        chain += [("over", backing.get("type", "")), *_all_values(backing.find("format")),
                  *_all_values(backing.find("source"))]
        backing = backing.find("backingStore")
        if backing is None:
            raise Refused("a disk whose chain has no end")
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
    """A serial port, or the console that stands for it; a channel to the guest."""
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


#: How a device that has something of the host's is looked at, by its element.
LOOKS = {"disk": _disk, "interface": _interface, "serial": _line, "console": _line, "channel": _line,
         "graphics": _screen, "tpm": _tpm, "rng": _rng}


# --- for all of them

def _parts(device: Element, looked_at: Collection[str]) -> list[Element]:
    """Those of a device that its look is about. Refused: others that are not the guest's own affair."""
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
    """Of an element and of what is in it."""
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
    """libvirt spells one set in several ways: 0-2,^1 or 0,2."""
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
