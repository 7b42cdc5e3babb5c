"""Where guests' disks are kept. A disk's record says where, whatever the settings say later."""

from __future__ import annotations

from nova import errors
from nova.privileged.lvm import Clearing, Lvm
from nova.privileged.qemu_img import QemuImg
from nova.privileged.rbd import CephPool, Rbd
from nova.privileged.runner import CommandRunner
from nova.virt.libvirt.disks.backends.files import Qcow2Files, RawFiles
from nova.virt.libvirt.disks.backends.interface import Backend, Format, Space
from nova.virt.libvirt.disks.backends.lvm import LogicalVolumes
from nova.virt.libvirt.disks.backends.rbd import RbdDisks
from nova.virt.libvirt.disks.folders import DiskRecord
from nova.virt.libvirt.settings import LibvirtSettings

__all__ = ["Backend", "Backends", "Format", "Space"]


class Backends:
    """All of this host's, made when they are needed."""

    def __init__(self, settings: LibvirtSettings, tool: QemuImg, runner: CommandRunner) -> None:
        self._settings, self._tool, self._runner = settings, tool, runner

    def of(self, disk: DiskRecord) -> Backend:
        """By the record; host.NoBackend when this host has none of the kind."""
        if disk.store == "file":
            kind = Qcow2Files if disk.format == "qcow2" else RawFiles
            return kind(self._settings, self._tool, self._runner)
        where = disk.place.partition("/")[0]
        if disk.store == "lvm" and where:
            clearing = Clearing(self._settings.volume_clear, self._settings.volume_clear_mb << 20)
            return LogicalVolumes(Lvm(where, self._runner, clearing), self._tool, self._runner)
        if disk.store == "rbd" and where:
            pool = CephPool(where, self._settings.rbd_user, self._settings.rbd_conf)
            return RbdDisks(Rbd(pool, self._runner), self._tool, self._runner)
        raise errors.host.NoBackend(store=disk.store, place=disk.place)

    def space(self) -> Space:
        """Of the back end that new disks are kept in."""
        place = f"{self._settings.place}/" if self._settings.place else ""
        return self.of(DiskRecord(kind="root", name="disk", format="raw", size_bytes=0, store=self._settings.store,
                                  place=place)).space()
