"""The host side of a guest's interfaces (``nova.virt.interface.Interfaces``)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from nova.model.guest.orders import BuildOrder
from nova.model.network.networks import Interface
from nova.virt.libvirt import vifs
from nova.virt.libvirt.disks.folders import Folders
from nova.virt.libvirt.disks.records import PlugRecord
from nova.virt.libvirt.settings import LibvirtSettings
from nova.virt.libvirt.vifs import PlugContext, PlugTools


@dataclass(frozen=True, kw_only=True)
class LibvirtInterfaces:
    settings: LibvirtSettings
    folders: Folders
    tools: PlugTools

    def plug(self, order: BuildOrder) -> None:
        self.note(order.server_uuid, vifs.records(order.interfaces))
        self.prepare(order.server_uuid, order.interfaces)

    def unplug(self, server_uuid: str, order: BuildOrder | None) -> None:
        folder = self.folders.of(server_uuid)
        plugs = {plug.device: plug for plug in folder.plugs()}
        for plug in vifs.known_records(order.interfaces) if order is not None else ():
            plugs.setdefault(plug.device, plug)
        for plug in plugs.values():
            vifs.unplug(plug, self.tools)
        if folder.exists():
            folder.keep_plugs(())
            folder.leave()

    # --- for other parts of the driver

    def note(self, server_uuid: str, plugs: Iterable[PlugRecord]) -> None:
        """Record the interfaces before they are plugged: unplug uses this record."""
        folder = self.folders.of(server_uuid)
        folder.make()
        known = {plug.device: plug for plug in (*folder.plugs(), *plugs)}
        folder.keep_plugs(tuple(known.values()))

    def prepare(self, server_uuid: str, interfaces: Iterable[Interface]) -> None:
        """Prepare the host side of the interfaces. Raises HostRefused."""
        for interface in interfaces:
            vifs.prepare(interface, PlugContext(server_uuid, self.settings, self.tools))

    def unplug_one(self, server_uuid: str, interface: Interface) -> None:
        """Unplug one interface as its record says, even if the port has changed since."""
        folder = self.folders.of(server_uuid)
        plugs = folder.plugs()
        mine = tuple(one for one in plugs if one.id == interface.id) or vifs.known_records([interface])
        for plug in mine:
            vifs.unplug(plug, self.tools)
        if folder.exists():
            folder.keep_plugs(tuple(one for one in plugs if one.id != interface.id))
