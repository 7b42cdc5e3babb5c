"""Snapshots of volumes that are files in use: add an overlay file and merge files below it, as the volume service
requests when it creates and deletes snapshots. The files already exist, next to the volume's own."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path

import msgspec

from nova import errors, failures
from nova.model.guest.orders import VolumeSnapshotOrder
from nova.model.server.states import PowerState
from nova.virt.libvirt.disks.records import VolumeRecord
from nova.virt.libvirt.disks.refusals import convert_tool_errors
from nova.virt.libvirt.disks.volume_files import VolumeFile, chain
from nova.virt.libvirt.guest.volume_parts import VolumeParts
from nova.virt.libvirt.xml import disks as xml
from nova.virt.libvirt.xml import running as running_xml

LOG = logging.getLogger(__name__)

QCOW2 = "qcow2"


class LibvirtVolumeFiles(VolumeParts):
    def snapshot_volume(self, order: VolumeSnapshotOrder) -> PowerState:
        uuid, record = order.server_uuid, self._file(order)
        new = self._beside(order, record, order.new_file)
        target, text = self._running(order)
        if text is not None and xml.source_of(_disk(text, order)) != new:
            with self.agent.quiet(uuid, required=False):
                self.hypervisor.snapshot_disk(uuid, running_xml.disk_snapshot_xml(text, target, new, QCOW2))
        self._note(order, msgspec.structs.replace(record, path=new, format=QCOW2))
        LOG.info("volume %s is now written to %s", record.volume_id, new, extra={"server": uuid})
        return self.state_or_none(uuid)

    def merge_volume_snapshot(self, order: VolumeSnapshotOrder, stopped: Callable[[], bool]) -> PowerState:
        record = self._file(order)
        done, merge = (self._pull if order.merge_target_file is None else self._commit)(order, record)
        if not done():
            target, text = self._running(order)
            if text is not None:
                self.jobs.stop(order.server_uuid, target)
            merge(target, text is not None, stopped)
            if not done():
                raise errors.host.LibvirtRefused(task="merge the files of a disk", reason="its job ended early")
        self._note(order, record)
        return self.state_or_none(order.server_uuid)

    # --- internal

    def _pull(self, order: VolumeSnapshotOrder, record: VolumeRecord) -> tuple[Callable[[], bool], Merge]:
        """Return the steps that merge all files between the active one and its new base into the active one."""
        uuid, name = order.server_uuid, order.file_to_merge
        base = self._of_chain(order, record, name) if name is not None else None

        def done() -> bool:
            return chain(record.path, record.format)[1:2] == ((base,) if base is not None else ())

        def merge(target: str, runs: bool, stopped: Callable[[], bool]) -> None:
            if runs:
                self.hypervisor.begin_block_pull(uuid, target, base.path if base is not None else None)
                self._wait(uuid, target, stopped)
                return
            with convert_tool_errors():
                below = tuple(one.path for one in chain(record.path, record.format)[1:])
                self.images.pull(record.path, (Path(base.path).name, base.format) if base is not None else None, below)
        return done, merge

    def _commit(self, order: VolumeSnapshotOrder, record: VolumeRecord) -> tuple[Callable[[], bool], Merge]:
        """Return the steps that merge a file in the middle of the chain into one below it."""
        uuid, top = order.server_uuid, self._beside(order, record, order.file_to_merge or "", there=False)
        base = self._of_chain(order, record, order.merge_target_file or "")

        def done() -> bool:
            return top not in {one.path for one in chain(record.path, record.format)}

        def merge(target: str, runs: bool, stopped: Callable[[], bool]) -> None:
            if not runs:
                raise errors.guest.NotRunning(uuid=uuid)
            self.hypervisor.begin_block_commit(uuid, target, base.path, top)
            self._wait(uuid, target, stopped)
        return done, merge

    def _wait(self, server_uuid: str, target: str, stopped: Callable[[], bool]) -> None:
        with failures.on_failure(lambda: self.jobs.stop(server_uuid, target), on=errors.NovaError):
            self.jobs.wait(server_uuid, target, lambda job: job is None, stopped)

    def _file(self, order: VolumeSnapshotOrder) -> VolumeRecord:
        record = self.record(order.server_uuid, order.device.volume_id)
        if record is None or record.store != "file":
            raise errors.guest.NoVolumeFile(uuid=order.server_uuid, volume=order.device.volume_id, file="at all")
        return record

    def _beside(self, order: VolumeSnapshotOrder, record: VolumeRecord, name: str, there: bool = True) -> str:
        """Return the path of a file of that name. Raises guest.NoVolumeFile if there is none, or the name is
        invalid."""
        path = Path(record.path).with_name(name) if name and "/" not in name and name not in (".", "..") else None
        if path is None or path.is_symlink() or (there and not path.is_file()):
            raise errors.guest.NoVolumeFile(uuid=order.server_uuid, volume=order.device.volume_id, file=name)
        return str(path)

    def _of_chain(self, order: VolumeSnapshotOrder, record: VolumeRecord, name: str) -> VolumeFile:
        path = self._beside(order, record, name)
        for one in chain(record.path, record.format):
            if one.path == path:
                return one
        raise errors.guest.NoVolumeFile(uuid=order.server_uuid, volume=order.device.volume_id, file=name)

    def _running(self, order: VolumeSnapshotOrder) -> tuple[str, str | None]:
        """Return the disk's target, and the running guest's XML (None: it does not run). Raises guest.NotDefined."""
        found = self.hypervisor.definitions_of(order.server_uuid)
        return xml.target_of(_disk(found.running or found.kept or "<domain/>", order)), found.running

    def _note(self, order: VolumeSnapshotOrder, record: VolumeRecord) -> None:
        """Put the file into the persistent definition and the record. libvirt finds its backing chain at the next
        start."""
        found = self.hypervisor.definitions_of(order.server_uuid)
        disk = xml.find(found.kept, record.volume_id) if found.kept is not None else None
        if found.kept is not None and disk is not None and (
                xml.source_of(disk) != record.path or disk.find("backingStore") is not None):
            spec = self.spec(order.build, order.device, record, found)
            self.hypervisor.define(xml.with_source(found.kept, record.volume_id, spec))
        folder = self.folders.of(order.server_uuid)
        others = (one for one in folder.volumes() if one.volume_id != record.volume_id)
        folder.keep_volumes((*others, record))


Merge = Callable[[str, bool, Callable[[], bool]], None]  # disk target; whether the guest runs; whether to stop


def _disk(definition: str, order: VolumeSnapshotOrder) -> xml.Element:
    """Return the volume's disk. Raises guest.NoVolumeFile if the guest has no such disk."""
    disk = xml.find(definition, order.device.volume_id)
    if disk is None:
        raise errors.guest.NoVolumeFile(uuid=order.server_uuid, volume=order.device.volume_id, file="at all")
    return disk
