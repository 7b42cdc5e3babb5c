"""The common base of the driver's volume parts: their tools, and lookups of a guest's volumes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import msgspec

from nova.model.guest.orders import BuildOrder
from nova.model.server.states import PowerState
from nova.model.volumes import BlockDevice
from nova.privileged.qemu_img import QemuImg
from nova.virt.libvirt.disks.folders import Folders
from nova.virt.libvirt.disks.records import VolumeRecord
from nova.virt.libvirt.guest.agent import LibvirtAgent
from nova.virt.libvirt.guest.definition import volume_spec
from nova.virt.libvirt.guest.release import Releases
from nova.virt.libvirt.guest.volume_jobs import DiskJobs
from nova.virt.libvirt.host.facts import HypervisorFacts
from nova.virt.libvirt.hypervisor import Definitions, LibvirtHypervisor
from nova.virt.libvirt.settings import LibvirtSettings
from nova.virt.libvirt.volumes.connections import VolumeConnections
from nova.virt.libvirt.xml import disks as xml
from nova.virt.libvirt.xml.specs import DiskSpec


@dataclass(frozen=True, kw_only=True)
class VolumeParts:
    hypervisor: LibvirtHypervisor
    settings: LibvirtSettings
    folders: Folders
    facts: Callable[[], HypervisorFacts]
    connections: VolumeConnections
    releases: Releases
    jobs: DiskJobs
    agent: LibvirtAgent
    images: QemuImg

    def record(self, server_uuid: str, volume_id: str) -> VolumeRecord | None:
        """Return the record of a connected volume; None if it is not connected."""
        return next((one for one in self.folders.of(server_uuid).volumes() if one.volume_id == volume_id), None)

    def spec(self, build: BuildOrder, device: BlockDevice, record: VolumeRecord, found: Definitions) -> DiskSpec:
        """Return the device's spec for that record, with a name that no other disk has in the running guest or in its
        persistent definition."""
        volume_id, names = device.volume_id, set[str]()
        for text in (one for one in found if one is not None):
            names |= xml.targets(text) - {xml.volume_targets(text).get(volume_id, "")}
        record = msgspec.structs.replace(record, volume_id=volume_id)
        return volume_spec(build, device, record, self.facts(), self.settings, names)

    def state_or_none(self, server_uuid: str) -> PowerState:
        """Return the guest's power state; NOSTATE if there is no such guest."""
        state = self.hypervisor.state(server_uuid)
        return PowerState.NOSTATE if state is None else state
