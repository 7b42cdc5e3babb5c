"""The part of the fake hypervisor that gives running guests' screens their ports."""

from __future__ import annotations

import itertools
import xml.etree.ElementTree as ET
from collections.abc import Mapping

from nova.model.states import PowerState
from nova.virt.libvirt.hypervisor import Definitions

FIRST = 5900
UP = frozenset({PowerState.RUNNING, PowerState.PAUSED})


class Screens:
    """``spice_tls``: QEMU has certificates for SPICE, so that its screens have a TLS port beside the plain one.
    ``shy``: guests run and have no ports yet."""

    xml: dict[str, str]
    power: dict[str, PowerState]

    def __init__(self) -> None:
        self.spice_tls, self.shy = False, False
        self._ports: dict[str, list[int]] = {}
        self._live: dict[str, str] = {}  # what guests run with that were defined anew meanwhile

    def shown(self, server_uuid: str) -> str:
        """The guest's XML, with the ports of its screens where it runs."""
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
        """What has stopped starts with other ports, perhaps."""
        if self.power.get(server_uuid) not in UP:
            self._ports.pop(server_uuid, None)
            self._live.pop(server_uuid, None)

    def keep_live(self, server_uuid: str) -> None:
        """The guest is about to be defined anew: while it runs, it stays what it is."""
        if self.power.get(server_uuid) in UP:
            self._live.setdefault(server_uuid, self.xml[server_uuid])

    def definitions(self) -> Mapping[str, Definitions]:
        return {uuid: Definitions(self.shown(uuid) if state in UP else None, self.xml[uuid])
                for uuid, state in self.power.items()}

    def _names(self, graphics: ET.Element) -> tuple[str, ...]:
        """As libvirt's autoport does."""
        if graphics.get("type") != "spice":
            return ("port",)
        if graphics.get("defaultMode") == "secure":
            return ("tlsPort",)
        return ("port", "tlsPort") if self.spice_tls else ("port",)
