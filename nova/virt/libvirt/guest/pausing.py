"""Guests that stay in memory and do not run (``nova.virt.interface.Pausing``), and the interrupt that makes a guest
write its crash dump (``CrashDumps``)."""

from __future__ import annotations

from nova import errors
from nova.model.states import PowerState
from nova.virt.libvirt.base import OFF, Room


class LibvirtPausing(Room):
    def pause(self, server_uuid: str) -> PowerState:
        if self._state(server_uuid) in OFF:
            raise errors.guest.NotRunning(uuid=server_uuid)
        self._tools.hypervisor.pause(server_uuid)
        return self._state(server_uuid)

    def unpause(self, server_uuid: str) -> PowerState:
        if self._state(server_uuid) in OFF:
            raise errors.guest.NotRunning(uuid=server_uuid)
        self._tools.hypervisor.unpause(server_uuid)
        return self._state(server_uuid)

    def crash(self, server_uuid: str) -> None:
        if self._state(server_uuid) in OFF:
            raise errors.guest.NotRunning(uuid=server_uuid)
        self._tools.hypervisor.interrupt(server_uuid)
