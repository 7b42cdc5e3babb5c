"""Parts of the fake conductor: servers' volumes, attached and detached immediately, and the volume service's own."""

from __future__ import annotations

import datetime
import uuid
from typing import Any

from nova import errors
from nova.model.volumes import AVAILABLE, BlockDevice, Volume, VolumeSnapshot
from tests.fakes.shelves import first, held, page, replace

WHEN = datetime.datetime(2026, 1, 2, 3, 4, 5, 678901)


class ServerVolumes:
    """Servers' volumes. ``devices``: by server uuid."""

    def _device(self: Any, server_uuid: str, volume_id: str) -> BlockDevice:
        found: BlockDevice = first((one for one in self.devices.get(server_uuid, ()) if one.volume_id == volume_id),
                                   f"Attachment of volume {volume_id}")
        return found

    def _put(self: Any, server_uuid: str, old: BlockDevice, *new: BlockDevice) -> None:
        self.devices[server_uuid] = (*(one for one in self.devices[server_uuid] if one is not old), *new)

    def list_server_volumes(self: Any, query: Any) -> Any:
        self._find(query.uuid, query.scope)
        return self.devices.get(query.uuid, ())

    def attach_volume(self: Any, server_uuid: Any, wanted: Any, wait: Any) -> Any:
        self._find(server_uuid)
        if any(one.volume_id == wanted.volume_id for one in self.devices.get(server_uuid, ())):
            raise errors.Invalid(f"Volume {wanted.volume_id} is attached already.")
        return self.add_device(server_uuid, volume_id=wanted.volume_id, tag=wanted.tag,
                               delete_on_termination=wanted.delete_on_termination)

    def detach_volume(self: Any, server_uuid: Any, volume_id: Any) -> None:
        device = self._device(server_uuid, volume_id)
        if device.boot_index == 0:
            raise errors.Invalid("Cannot detach a root device volume")
        self._put(server_uuid, device)

    def swap_volume(self: Any, server_uuid: Any, volume_id: Any, new_volume_id: Any) -> None:
        device = self._device(server_uuid, volume_id)
        self._put(server_uuid, device, replace(device, volume_id=new_volume_id))

    def keep_volume(self: Any, server_uuid: Any, volume_id: Any, delete_on_termination: Any) -> None:
        device = self._device(server_uuid, volume_id)
        self._put(server_uuid, device, replace(device, delete_on_termination=delete_on_termination))

    def create_assisted_snapshot(self: Any, wanted: Any) -> None:
        pass

    def delete_assisted_snapshot(self: Any, gone: Any) -> None:
        pass


class VolumeProxies:
    """The volume service's resources: ``volumes`` and ``volume_snapshots``, by id."""

    def list_volumes(self: Any, query: Any) -> Any:
        return page(self.volumes.values(), query)

    def get_volume(self: Any, volume_id: Any) -> Any:
        return held(self.volumes, volume_id, "Volume")

    def create_volume(self: Any, new: Any) -> Any:
        if new.snapshot_id:
            held(self.volume_snapshots, new.snapshot_id, "Snapshot")
        known = {name: getattr(new, name) or "" for name in ("name", "volume_type", "availability_zone")}
        made = Volume(id=str(uuid.uuid4()), created_at=WHEN, size_gb=new.size_gb, description=new.description,
                      snapshot_id=new.snapshot_id, metadata=new.metadata, **known)
        self.volumes[made.id] = made
        return made

    def delete_volume(self: Any, volume_id: Any) -> None:
        if held(self.volumes, volume_id, "Volume").attachments:
            raise errors.Invalid(f"Volume {volume_id} is in use.")
        del self.volumes[volume_id]

    def list_volume_snapshots(self: Any, query: Any) -> Any:
        return page(self.volume_snapshots.values(), query)

    def get_volume_snapshot(self: Any, snapshot_id: Any) -> Any:
        return held(self.volume_snapshots, snapshot_id, "Snapshot")

    def create_volume_snapshot(self: Any, new: Any) -> Any:
        volume = held(self.volumes, new.volume_id, "Volume")
        if volume.status != AVAILABLE and not new.force:
            raise errors.Invalid(f"Volume {volume.id} is {volume.status}.")
        made = VolumeSnapshot(id=str(uuid.uuid4()), volume_id=volume.id, size_gb=volume.size_gb, name=new.name,
                              description=new.description, created_at=WHEN)
        self.volume_snapshots[made.id] = made
        return made

    def delete_volume_snapshot(self: Any, snapshot_id: Any) -> None:
        held(self.volume_snapshots, snapshot_id, "Snapshot")
        del self.volume_snapshots[snapshot_id]
