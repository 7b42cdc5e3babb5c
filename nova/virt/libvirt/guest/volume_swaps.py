"""Swap a running guest's volume for another one: QEMU copies it, and writes to both until the guest switches over. The
guest sees the same disk, and its id on this host stays the same."""

from __future__ import annotations

import logging
from collections.abc import Callable

from nova import errors, failures
from nova.model.guest.orders import VolumeOrder
from nova.model.server.states import PowerState
from nova.virt.libvirt.disks.records import VolumeRecord
from nova.virt.libvirt.guest.volume_parts import VolumeParts
from nova.virt.libvirt.hypervisor import BlockJob
from nova.virt.libvirt.xml import disks as xml

LOG = logging.getLogger(__name__)


class LibvirtVolumeSwaps(VolumeParts):
    def swap_volume(self, order: VolumeOrder, stopped: Callable[[], bool]) -> PowerState:
        uuid, volume_id = order.server_uuid, order.disk.device.volume_id
        new = self._connected(order)
        with failures.on_failure(lambda: self._leave(order, new)):
            if not self._has(order, new):
                self._copy(order, new, stopped)
        self._keep(order, new)
        LOG.info("volume %s now uses %s", volume_id, new.path, extra={"server": uuid})
        return self.state_or_none(uuid)

    def unswap_volume(self, order: VolumeOrder) -> PowerState:
        new = self._connected(order)
        if self._has(order, new):
            self._keep(order, new)
            raise errors.guest.HasSuccessor(uuid=order.server_uuid, volume=order.disk.device.volume_id)
        self._leave(order, new)
        return self.state_or_none(order.server_uuid)

    # --- internal

    def _connected(self, order: VolumeOrder) -> VolumeRecord:
        """Connect the successor and return its record. Raises host.VolumeNotConnected if the order names none."""
        uuid, successor = order.server_uuid, order.successor
        if successor is None:
            raise errors.host.VolumeNotConnected(volume=order.disk.device.volume_id, uuid=uuid)
        self.connections.connect(uuid, [successor])
        [record] = [one for one in self.folders.of(uuid).volumes() if one.volume_id == successor.device.volume_id]
        return record

    def _has(self, order: VolumeOrder, new: VolumeRecord) -> bool:
        """Return whether the guest uses the successor now, or used it when it last ran."""
        found = self.releases.definitions(order.server_uuid)
        text = found.running or found.kept
        disk = xml.find(text, order.disk.device.volume_id) if text is not None else None
        return disk is not None and xml.source_of(disk) == new.path

    def _copy(self, order: VolumeOrder, new: VolumeRecord, stopped: Callable[[], bool]) -> None:
        uuid, found = order.server_uuid, self.releases.definitions(order.server_uuid)
        disk = xml.find(found.running, order.disk.device.volume_id) if found.running is not None else None
        if disk is None:
            raise errors.guest.NotRunning(uuid=uuid)
        target = xml.target_of(disk)
        self.jobs.stop(uuid, target)
        spec = self.spec(order.build, order.disk.device, new, found)
        self.hypervisor.begin_block_copy(uuid, target, xml.copy_to(spec))
        if self.jobs.wait(uuid, target, _ready, stopped) is None:
            raise errors.host.LibvirtRefused(task="copy the guest's disk", reason="the copy ended early")
        self.hypervisor.end_block_job(uuid, target, pivot=True)
        self.jobs.wait(uuid, target, lambda job: job is None)
        if not self._has(order, new):
            raise errors.host.LibvirtRefused(task="copy the guest's disk", reason="the guest does not use the copy")

    def _keep(self, order: VolumeOrder, new: VolumeRecord) -> None:
        """Put the new volume into the persistent definition, and disconnect the old one."""
        uuid, volume_id = order.server_uuid, order.disk.device.volume_id
        kept = self.releases.definitions(uuid).kept
        disk = xml.find(kept, volume_id) if kept is not None else None
        if kept is not None and disk is not None and xml.source_of(disk) != new.path:
            spec = self.spec(order.build, order.disk.device, new, self.releases.definitions(uuid))
            self.hypervisor.define(xml.with_source(kept, volume_id, spec))
        self.connections.replace(uuid, volume_id, new.volume_id)
        folder = self.folders.of(uuid)
        if folder.exists():
            folder.keep_order(order.build)

    def _leave(self, order: VolumeOrder, new: VolumeRecord) -> None:
        """Undo a failed copy. If it cannot be stopped now, the volume stays connected until the guest is removed."""
        uuid, running = order.server_uuid, self.releases.definitions(order.server_uuid).running
        disk = xml.find(running, order.disk.device.volume_id) if running is not None else None
        with failures.best_effort(LOG, "could not stop the copy of volume %s: %s", order.disk.device.volume_id,
                extra={"server": uuid}):
            if disk is not None:
                self.jobs.stop(uuid, xml.target_of(disk))
            if not self._has(order, new):
                self.connections.release(uuid, new.volume_id)


def _ready(job: BlockJob | None) -> bool:
    """Return whether all data is copied, so that only new writes are mirrored, or the job is gone."""
    return job is None or job.end_bytes > 0 and job.done_bytes == job.end_bytes
