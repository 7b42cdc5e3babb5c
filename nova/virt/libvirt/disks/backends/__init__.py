"""Back ends of guests' disks. A disk's record names its back end, even after the settings change."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from nova import concurrency, errors
from nova.privileged.lvm import Clearing, Lvm
from nova.privileged.qemu_img import QemuImg
from nova.privileged.rbd import CephPool, Rbd
from nova.privileged.runner import CommandRunner
from nova.virt.libvirt.disks.backends.files import Qcow2Files, RawFiles
from nova.virt.libvirt.disks.backends.interface import Backend, Format, PooledBackend, Space
from nova.virt.libvirt.disks.backends.lvm import LogicalVolumes
from nova.virt.libvirt.disks.backends.pool import PoolHosts, PoolTrash
from nova.virt.libvirt.disks.backends.rbd import RbdDisks
from nova.virt.libvirt.disks.image_clones import RbdImageClones
from nova.virt.libvirt.disks.rbd_snapshots import RbdSnapshots
from nova.virt.libvirt.disks.records import DiskRecord
from nova.virt.libvirt.settings import LibvirtSettings

__all__ = ["Backend", "Backends", "Format", "PooledBackend", "Space"]


class Backends:
    """The back ends of this host, created on demand. ``host``: a name that is unique among hosts."""

    def __init__(self, settings: LibvirtSettings, tool: QemuImg, runner: CommandRunner,
                 host: Callable[[], str] = lambda: "", clock: concurrency.Clock | None = None) -> None:
        self._settings, self._tool, self._runner = settings, tool, runner
        self._hosts = PoolHosts(host)
        self._trash = PoolTrash(settings.rbd_retries, settings.rbd_retry_s, clock or concurrency.Clock())

    def of(self, disk: DiskRecord) -> Backend:
        """Return the back end of a record. Raises host.NoBackend if this host does not have it."""
        if disk.store == "file":
            kind = Qcow2Files if disk.format == "qcow2" else RawFiles
            return kind(self._settings, self._tool, self._runner)
        where = disk.place.partition("/")[0]
        if disk.store == "lvm" and where:
            clearing = Clearing(self._settings.volume_clear, self._settings.volume_clear_mb << 20)
            return LogicalVolumes(Lvm(where, self._runner, clearing), self._tool, self._runner)
        if disk.store == "rbd" and where:
            return self._rbd(where)
        raise errors.host.NoBackend(store=disk.store, place=disk.place)

    def pooled(self, disk: DiskRecord) -> PooledBackend:
        """Return the back end of a ``pooled`` record. Raises host.NoBackend."""
        if disk.store != "rbd":
            raise errors.host.NoBackend(store=disk.store, place=disk.place)
        return self._rbd(disk.place.partition("/")[0])

    def begin(self) -> None:
        """Empty the pool's trash of images that an earlier process left. Called once, at start."""
        if self._settings.store == "rbd":
            self._trash.watch(self._pool(self._settings.place))

    def drop_bases(self, names: Iterable[str]) -> None:
        """Remove the pool's copies of these files, which left the image cache, unless a disk is backed by them."""
        if self._settings.store == "rbd":
            for name in names:
                self._rbd(self._settings.place).drop_base(name)

    def space(self) -> Space:
        """Return the space of the back end for new disks."""
        place = f"{self._settings.place}/" if self._settings.place else ""
        return self.of(DiskRecord(kind="root", name="disk", format="raw", size_bytes=0, store=self._settings.store,
                                  place=place)).space()

    def image_clones(self) -> RbdImageClones | None:
        """Return the source of image clones for new root disks; None if disks are not in Ceph."""
        return RbdImageClones(self._pool(self._settings.place)) if self._settings.store == "rbd" else None

    def snapshots(self) -> RbdSnapshots | None:
        """Return the maker of snapshots within Ceph; None if snapshots are files."""
        settings = self._settings
        if settings.store != "rbd" or not settings.snapshot_pool:
            return None
        return RbdSnapshots(self._pool(settings.place), self._pool(settings.snapshot_pool))

    def _rbd(self, pool: str) -> RbdDisks:
        return RbdDisks(self._pool(pool), self._tool, self._runner, self._hosts, self._trash, self.snapshots())

    def _pool(self, name: str) -> Rbd:
        settings = self._settings
        return Rbd(CephPool(name, settings.rbd_user, settings.rbd_conf, settings.rbd_connect_s), self._runner)
