"""Parts of the fake hypervisor: hot-plug and unplug of devices, and ports of screens."""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import xml.etree.ElementTree as ET
from collections.abc import Mapping

from nova import errors
from nova.model.server.states import PowerState
from nova.virt.libvirt.hypervisor import BlockJob, Definitions

FIRST = 5900  # first port of screens
UP = frozenset({PowerState.RUNNING, PowerState.PAUSED})


def placed(xml: str) -> str:
    """Return the domain with a PCI address for each interface, as libvirt assigns them when it defines the domain."""
    domain = ET.fromstring(xml)
    for slot, card in enumerate(domain.iterfind("devices/interface"), 3):
        if card.find("address") is None:
            ET.SubElement(card, "address", type="pci", domain="0x0000", bus="0x00", slot=f"0x{slot:02x}",
                          function="0x0")
    return ET.tostring(domain, encoding="unicode")


def _name(device: ET.Element) -> str | None:
    """Return the key by which libvirt finds a device: an interface's address, or a disk's name."""
    part, attribute = {"interface": ("mac", "address"), "disk": ("target", "dev")}[device.tag]
    found = device.find(part)
    return found.get(attribute) if found is not None else None


def _put_source(devices: ET.Element, target: str, copy: ET.Element) -> None:
    [disk] = [one for one in devices.findall("disk") if _name(one) == target]
    for tag in ("source", "driver", "auth"):
        for part in disk.findall(tag):
            disk.remove(part)
        disk.extend(copy.findall(tag))
    disk.set("type", copy.get("type", ""))


def _qemu_img(*words: str) -> str:
    return subprocess.run(["qemu-img", *words], check=True, capture_output=True, text=True).stdout


def _below(path: str) -> str:
    return str(json.loads(_qemu_img("info", "--output=json", path)).get("backing-filename", ""))


def _format(path: str) -> str:
    """Return the format of a file by its header, which is reliable in tests."""
    with open(path, "rb") as source:
        return "qcow2" if source.read(4) == b"QFI\xfb" else "raw"


class Devices:
    """Devices of guests. ``block_jobs``: progress and result of jobs, by uuid and disk; ``block_fails``: reason of the
    next job's failure; ``block_hangs``: jobs make no progress. ``deaf``: number of unplug requests that guests ignore.
    ``plug_fails``: reason of the next hot-plug's failure. ``asked_for``: number of unplug requests. ``disk_sizes``:
    sizes that running guests were notified of, by uuid and name."""

    xml: dict[str, str]
    power: dict[str, PowerState]
    _live: dict[str, str]

    def __init__(self) -> None:
        self.why_not_receiving, self.plug_fails, self.asked_for = 0, "", 0
        self.disk_sizes: dict[tuple[str, str], int] = {}
        self.block_jobs: dict[tuple[str, str], tuple[BlockJob, str]] = {}
        self.block_fails, self.block_hangs = "", False

    def definitions_of(self, server_uuid: str) -> Definitions:
        self._known(server_uuid)  # type: ignore[attr-defined]
        running = self.shown(server_uuid) if self.power[server_uuid] in UP else None  # type: ignore[attr-defined]
        return Definitions(running, self.xml[server_uuid])

    def attach_device(self, server_uuid: str, xml: str, running: bool) -> None:
        self._needs_running(server_uuid, running)
        if running and self.plug_fails:
            reason, self.plug_fails = self.plug_fails, ""
            raise errors.host.LibvirtRefused(task="attach the device", reason=reason)
        device = ET.fromstring(xml)

        def add(devices: ET.Element) -> None:
            last = max((n for n, one in enumerate(devices) if one.tag == device.tag), default=len(devices) - 1)
            devices.insert(last + 1, device)
        self._change(server_uuid, running, add)

    def detach_device(self, server_uuid: str, xml: str, running: bool) -> None:
        self._needs_running(server_uuid, running)
        if running:
            self.asked_for += 1
            if self.why_not_receiving:
                self.why_not_receiving -= 1
                return
        device = ET.fromstring(xml)

        def remove(devices: ET.Element) -> None:
            for one in devices.findall(device.tag):
                if _name(one) == _name(device):
                    devices.remove(one)
        self._change(server_uuid, running, remove)

    def resize_disk(self, server_uuid: str, target: str, size_bytes: int) -> None:
        self._needs_running(server_uuid, True)
        self.disk_sizes[server_uuid, target] = size_bytes

    def begin_block_copy(self, server_uuid: str, target: str, xml: str) -> None:
        self._needs_running(server_uuid, True)
        self._may_begin()
        if (server_uuid, target) in self.block_jobs:
            raise errors.host.LibvirtRefused(task="copy the guest's disk", reason="disk already in active block job")
        self.block_jobs[server_uuid, target] = (BlockJob(0, 10) if self.block_hangs else BlockJob(10, 10), xml)

    def snapshot_disk(self, server_uuid: str, xml: str) -> None:
        self._needs_running(server_uuid, True)
        self._may_begin()
        made = ET.fromstring(xml).find("disks/disk[@snapshot='external']")
        assert made is not None
        self._change(server_uuid, True, lambda devices: _put_source(devices, made.get("name", ""), made))

    def begin_block_pull(self, server_uuid: str, target: str, base: str | None) -> None:
        self._needs_running(server_uuid, True)
        self._may_begin()
        path = self._path(server_uuid, target)
        below = [] if base is None else ["-F", _format(base)]
        _qemu_img("rebase", "-f", "qcow2", *below, "-b", os.path.basename(base or ""), path)

    def begin_block_commit(self, server_uuid: str, target: str, base: str, top: str) -> None:
        self._needs_running(server_uuid, True)
        self._may_begin()
        above = self._path(server_uuid, target)
        while os.path.basename(_below(above)) != os.path.basename(top):
            above = os.path.join(os.path.dirname(top), _below(above))
        _qemu_img("commit", "-q", "-d", "-f", "qcow2", "-b", os.path.basename(base), top)
        _qemu_img("rebase", "-u", "-f", "qcow2", "-F", _format(base), "-b", os.path.basename(base), above)

    def _may_begin(self) -> None:
        if self.block_fails:
            reason, self.block_fails = self.block_fails, ""
            raise errors.host.LibvirtRefused(task="copy the guest's disk", reason=reason)

    def _path(self, server_uuid: str, target: str) -> str:
        domain = ET.fromstring(self.shown(server_uuid))  # type: ignore[attr-defined]
        [source] = domain.findall(f"devices/disk/target[@dev='{target}']/../source")
        return source.get("file", "")

    def block_job(self, server_uuid: str, target: str) -> BlockJob | None:
        found = self.block_jobs.get((server_uuid, target))
        return found[0] if found else None

    def end_block_job(self, server_uuid: str, target: str, pivot: bool) -> None:
        self._needs_running(server_uuid, True)
        _job, xml = self.block_jobs.pop((server_uuid, target))
        if pivot:
            copy = ET.fromstring(xml)
            self._change(server_uuid, True, lambda devices: _put_source(devices, target, copy))

    def _needs_running(self, server_uuid: str, running: bool) -> None:
        self._known(server_uuid)  # type: ignore[attr-defined]
        if running and self.power[server_uuid] not in UP:
            raise errors.host.LibvirtRefused(task="do that", reason="domain is not running")

    def _change(self, server_uuid: str, running: bool, change: object) -> None:
        self.keep_live(server_uuid)  # type: ignore[attr-defined]
        texts = self._live if running else self.xml
        domain = ET.fromstring(texts[server_uuid])
        change(domain.find("devices"))  # type: ignore[operator]
        texts[server_uuid] = ET.tostring(domain, encoding="unicode")


class Screens:
    """Screens of guests. ``spice_tls``: QEMU has certificates for SPICE, so its screens also have a TLS port.
    ``shy``: running guests have no ports yet."""

    xml: dict[str, str]
    power: dict[str, PowerState]

    def __init__(self) -> None:
        self.spice_tls, self.shy = False, False
        self._ports: dict[str, list[int]] = {}
        self._live: dict[str, str] = {}  # active XML of running guests that were redefined

    def shown(self, server_uuid: str) -> str:
        """Return the guest's XML, with the ports of its screens if it is running."""
        if self.power[server_uuid] not in UP:
            return self.xml[server_uuid]
        domain = ET.fromstring(self._live.get(server_uuid, self.xml[server_uuid]))
        own = self._ports.setdefault(server_uuid, [])
        names = [(graphics, name) for graphics in domain.iterfind("devices/graphics") for name in self._names(graphics)]
        for index, (graphics, name) in enumerate(names):
            if index == len(own):
                taken = {port for uuid, ports in self._ports.items() if self.power.get(uuid) in UP for port in ports}
                own.append(next(port for port in itertools.count(FIRST) if port not in taken))
            graphics.set(name, "-1" if self.shy else str(own[index]))
        return ET.tostring(domain, encoding="unicode")

    def forget_screens(self, server_uuid: str) -> None:
        """Forget the ports of a stopped guest: it may start with other ones."""
        if self.power.get(server_uuid) not in UP:
            self._ports.pop(server_uuid, None)
            self._live.pop(server_uuid, None)

    def keep_live(self, server_uuid: str) -> None:
        """Keep the active XML of a running guest before it is redefined."""
        if self.power.get(server_uuid) in UP:
            self._live.setdefault(server_uuid, self.xml[server_uuid])

    def definitions(self) -> Mapping[str, Definitions]:
        return {uuid: Definitions(self.shown(uuid) if state in UP else None, self.xml[uuid])
                for uuid, state in self.power.items()}

    def _names(self, graphics: ET.Element) -> tuple[str, ...]:
        """Return the attributes of ports that libvirt's autoport sets."""
        if graphics.get("type") != "spice":
            return ("port",)
        if graphics.get("defaultMode") == "secure":
            return ("tlsPort",)
        return ("port", "tlsPort") if self.spice_tls else ("port",)
