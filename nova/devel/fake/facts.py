"""Facts that a fake host reports about its guests and itself."""

from __future__ import annotations

import datetime
import time

from nova import errors
from nova.devel.fake.hypervisor import Part, knobbed
from nova.model.base import utcnow
from nova.model.guest.guests import DevicePlace
from nova.model.guest.orders import BuildOrder
from nova.model.host.hosts import HostUptime
from nova.model.numa.topology import TopologyClaim
from nova.model.server.diagnostics import CpuUse, Diagnostics, DiskUse, NicUse
from nova.model.server.states import PowerState

#: action on the host -> the host's state afterwards, and the word for the answer
HOST_WORDS = {"startup": ("on", "startup"), "shutdown": ("off", "shutdown"), "reboot": ("on", "reboot"),
              "maintenance_on": ("maintenance", "on_maintenance"), "maintenance_off": ("on", "off_maintenance")}


class FakeGuestFacts(Part):
    @knobbed
    def console_output(self, server_uuid: str, lines: int | None) -> str:
        console = self._hypervisor.defined(server_uuid).console
        wanted = console if lines is None else console[-lines:] if lines > 0 else []
        return "".join(f"{line}\n" for line in wanted)

    @knobbed
    def diagnostics(self, server_uuid: str) -> Diagnostics:
        """Return the diagnostics of an idle guest. The driver is libvirt, which it replaces: the API only supports real
        drivers."""
        guest = self._hypervisor.defined(server_uuid)
        nothing = {"read_bytes": 0, "read_requests": 0, "write_bytes": 0, "write_requests": 0, "errors": 0}
        idle = dict.fromkeys((f"{way}_{what}" for way in ("rx", "tx")
                              for what in ("octets", "packets", "errors", "drop", "rate")), 0)
        return Diagnostics(
            power_state=PowerState(guest.power_state), driver="libvirt", hypervisor="fake", hypervisor_os="fake",
            cpus=tuple(CpuUse(id=number, time_ns=0, utilisation=0) for number in range(guest.vcpus)),
            nics=tuple(NicUse(device=tap, mac=mac, **idle) for tap, mac in zip(guest.taps, guest.macs, strict=True)),
            disks=tuple(DiskUse(device=f"vd{chr(ord('a') + number)}", **nothing)
                        for number, _ in enumerate([*(one for one in guest.disks if one != "config"), *guest.volumes])),
            memory_max_mb=guest.memory_mb, memory_used_mb=0)

    def device_places(self, server_uuid: str) -> dict[str, DevicePlace]:
        guest = self._hypervisor.defined(server_uuid)
        return {mac.lower(): DevicePlace(bus="pci", address=f"0000:00:{number:02x}.0")
                for number, mac in enumerate(guest.macs, start=3)}

    def packings(self, node: str = "", source_copies: bool = False) -> dict[str, TopologyClaim]:
        guests = (self._hypervisor.source_copies if source_copies else self._hypervisor.store).all()
        return {guest.uuid: guest.packing for guest in guests
                if guest.packing and (not node or guest.node in (node, ""))}

    def packing(self, server_uuid: str) -> TopologyClaim | None:
        guest = self._hypervisor.store.find(server_uuid)
        return guest.packing if guest is not None else None

    def kept_order(self, server_uuid: str) -> BuildOrder | None:
        guest = self._hypervisor.store.find(server_uuid)
        return guest.order if guest is not None else None


class FakeHost:
    def __init__(self) -> None:
        self._started = time.monotonic()
        self.power = "on"  # on, off, or maintenance

    def uptime(self) -> HostUptime:
        return HostUptime(booted_at=utcnow() - datetime.timedelta(seconds=int(time.monotonic() - self._started)))

    def change_host_power(self, action: str) -> str:
        """Record the new power state."""
        if action not in HOST_WORDS:
            raise errors.host.NoSuchAction(action=action)
        self.power, word = HOST_WORDS[action]
        return word
