"""The part of the fake hypervisor whose guests get devices, and give them up, while they run."""

from __future__ import annotations

import xml.etree.ElementTree as ET

from nova import errors
from nova.model.states import PowerState
from nova.virt.libvirt.hypervisor import Definitions

UP = frozenset({PowerState.RUNNING, PowerState.PAUSED})


def placed(xml: str) -> str:
    """The domain with a PCI address for each of its cards that has none, as libvirt gives them when it is defined."""
    domain = ET.fromstring(xml)
    for slot, card in enumerate(domain.iterfind("devices/interface"), 3):
        if card.find("address") is None:
            ET.SubElement(card, "address", type="pci", domain="0x0000", bus="0x00", slot=f"0x{slot:02x}",
                          function="0x0")
    return ET.tostring(domain, encoding="unicode")


class Devices:
    """``deaf``: how often guests don't hear that they shall give up a device. ``plug_fails``: why the next one can not
    be plugged into a running guest. ``asked_for``: how often guests were asked."""

    xml: dict[str, str]
    power: dict[str, PowerState]
    _live: dict[str, str]

    def __init__(self) -> None:
        self.deaf, self.plug_fails, self.asked_for = 0, "", 0

    def definitions_of(self, server_uuid: str) -> Definitions:
        self._known(server_uuid)  # type: ignore[attr-defined]
        running = self.shown(server_uuid) if self.power[server_uuid] in UP else None  # type: ignore[attr-defined]
        return Definitions(running, self.xml[server_uuid])

    def attach_device(self, server_uuid: str, xml: str, running: bool) -> None:
        self._needs_running(server_uuid, running)
        if running and self.plug_fails:
            reason, self.plug_fails = self.plug_fails, ""
            raise errors.host.LibvirtRefused(task="plug the device in", reason=reason)
        device = ET.fromstring(xml)

        def add(devices: ET.Element) -> None:
            last = max((n for n, one in enumerate(devices) if one.tag == device.tag), default=len(devices) - 1)
            devices.insert(last + 1, device)
        self._change(server_uuid, running, add)

    def detach_device(self, server_uuid: str, xml: str, running: bool) -> None:
        self._needs_running(server_uuid, running)
        if running:
            self.asked_for += 1
            if self.deaf:
                self.deaf -= 1
                return
        mac = ET.fromstring(xml).find("mac")

        def remove(devices: ET.Element) -> None:
            for one in devices.findall("interface"):
                own = one.find("mac")
                if mac is not None and own is not None and own.get("address") == mac.get("address"):
                    devices.remove(one)
        self._change(server_uuid, running, remove)

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
