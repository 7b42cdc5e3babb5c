"""The volume service and its client (``nova.clients.cinder.Cinder``) in one, in memory, with failures on demand."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable, Collection, Mapping
from typing import Any

import msgspec

from nova import errors
from nova.model.base import utcnow
from nova.model.volumes import (
    ATTACHED,
    ATTACHING,
    AVAILABLE,
    DETACHING,
    IN_USE,
    RESERVED,
    NewVolume,
    NewVolumeSnapshot,
    Volume,
    VolumeAttachment,
    VolumeConnection,
    VolumeEncryption,
    VolumeLimits,
    VolumeQuery,
    VolumeSnapshot,
)

SECRET = "a-password-of-a-back-end"


class FakeVolumeKeys:
    """The key manager's client (``nova.clients.key_manager.VolumeKeys``). ``users``, ``ours``: keys, by their ids, that
    users' tokens may read, and that nova may read. ``asked``: (key, as a user)."""

    def __init__(self) -> None:
        self.users: dict[str, str] = {}
        self.ours: dict[str, str] = {}
        self.asked: list[tuple[str, bool]] = []

    def passphrase(self, key_id: str, as_user: bool = False) -> str:
        self.asked.append((key_id, as_user))
        found = self.users if as_user else self.ours
        if key_id not in found:
            raise errors.volume.NoKey(key=key_id, reason="403 Forbidden")
        return found[key_id]


class FakeVolumes:
    """The service. ``fails``: name of a call -> error to raise before its execution, until it is removed; ``lost``:
    error to raise after its execution. ``calls``: (name, volume or attachment)."""

    def __init__(self) -> None:
        self.volumes: dict[str, Volume] = {}
        self.snapshots: dict[str, VolumeSnapshot] = {}
        self.attachments: dict[str, VolumeAttachment] = {}
        self.encryptions: dict[str, VolumeEncryption] = {}
        self.complete_ones: set[str] = set()
        self.fails: dict[str, errors.NovaError] = {}
        self.lost: dict[str, errors.NovaError] = {}
        self.calls: list[tuple[str, str]] = []
        self.moves: dict[str, str] = {}  # moved volumes -> result
        self.being_made = AVAILABLE  # the status of created volumes
        self.being_snapshot = AVAILABLE  # the status of created snapshots
        self.being_reimaged = ""  # the status of volumes during a reimage
        self.kind = "fake"  # type of connections
        self.data: dict[str, Any] = {}  # additional data of connections
        self._lock = threading.RLock()

    # -- for tests

    def add(self, **fields: Any) -> str:
        volume = Volume(**{"id": str(uuid.uuid4()), "size_gb": 1, "created_at": utcnow(), **fields})
        self.volumes[volume.id] = volume
        return volume.id

    def status(self, volume_id: str) -> str:
        return self.volumes[volume_id].status

    def of_server(self, server_uuid: str) -> list[VolumeAttachment]:
        return [one for one in self.attachments.values() if one.server_id == server_uuid]

    def hosts(self, volume_id: str) -> list[str]:
        """Return the hosts that may use a volume now."""
        return sorted(one.connection.data["host"] for one in self.attachments.values()
                      if one.volume_id == volume_id and one.connection)

    # -- volumes

    def get(self, volume_id: str, as_user: bool = False) -> Volume:
        return self._done("get", volume_id, lambda: self._volume(volume_id))

    def list(self, query: VolumeQuery, as_user: bool = False) -> tuple[Volume, ...]:
        return self._done("list", "", lambda: tuple(self.volumes.values())[query.offset:][:query.limit])

    def create(self, new: NewVolume, as_user: bool = False) -> Volume:
        return self._done("create", "", lambda: self.volumes[self.add(
            name=new.name, size_gb=new.size_gb, status=self.being_made, snapshot_id=new.snapshot_id,
            bootable=bool(new.image_id or new.snapshot_id))])

    def encryption(self, volume_id: str, as_user: bool = False) -> VolumeEncryption | None:
        return self._done("encryption", volume_id, lambda: self.encryptions.get(volume_id))

    def delete(self, volume_id: str, as_user: bool = False) -> None:
        def work() -> None:
            if self._volume(volume_id).status not in (AVAILABLE, "error", "creating"):
                raise errors.Invalid(f"volume {volume_id} is {self.status(volume_id)}")
            if any(one.volume_id == volume_id for one in self.snapshots.values()):
                raise errors.volume.Refused(reason=f"volume {volume_id} has snapshots")
            del self.volumes[volume_id]
        self._done("delete", volume_id, work)

    def begin_detaching(self, volume_id: str, as_user: bool = False) -> None:
        self._done("begin_detaching", volume_id, lambda: self._turn(volume_id, IN_USE, DETACHING))

    def roll_detaching(self, volume_id: str, as_user: bool = False) -> None:
        self._done("roll_detaching", volume_id, lambda: self._turn(volume_id, DETACHING, IN_USE))

    def reimage(self, volume_id: str, image_id: str, reserved: bool = True, as_user: bool = False) -> None:
        """Write an image to a volume, immediately; with ``being_reimaged``, when a test completes it."""
        def work() -> None:
            volume = self._volume(volume_id)
            if volume.status not in (AVAILABLE, "error", *((RESERVED,) if reserved else ())):
                raise errors.volume.Refused(reason=f"volume {volume_id} is {volume.status}")
            self.volumes[volume_id] = msgspec.structs.replace(
                volume, status=self.being_reimaged or RESERVED, image_metadata={"image_id": image_id})
        self._done("reimage", volume_id, work)

    def moving(self, old_id: str, **fields: Any) -> str:
        """Create the target volume of a migration, like the volume service before it requests a swap."""
        self.volumes[old_id] = msgspec.structs.replace(self.volumes[old_id], migration_status="migrating")
        return self.add(**{"size_gb": self.volumes[old_id].size_gb, "migration_status": f"target:{old_id}", **fields})

    def complete_migration(self, old_id: str, new_id: str, error: bool = False, as_user: bool = False) -> str:
        """Complete a migration: on success, both volumes swap their ids, and the old data is deleted."""
        def work() -> str:
            old, new = self._volume(old_id), self._volume(new_id)
            if new.migration_status != f"target:{old_id}":
                raise errors.Invalid(f"volume {old_id} is not moved to {new_id}")
            status = "error" if error else "success"
            self.volumes[old_id] = msgspec.structs.replace(old if error else new, id=old_id, migration_status=status)
            del self.volumes[new_id]
            self.moves[old_id] = status
            for one in [one for one in self.attachments.values() if one.volume_id == new_id and not error]:
                self.attachments[one.id] = msgspec.structs.replace(one, volume_id=old_id)
            return old_id
        return self._done("complete_migration", new_id, work)

    # -- snapshots

    def get_snapshot(self, snapshot_id: str, as_user: bool = False) -> VolumeSnapshot:
        def work() -> VolumeSnapshot:
            if snapshot_id not in self.snapshots:
                raise errors.volume.SnapshotNotFound(snapshot=snapshot_id)
            return self.snapshots[snapshot_id]
        return self._done("get_snapshot", snapshot_id, work)

    def list_snapshots(self, query: VolumeQuery, as_user: bool = False) -> tuple[VolumeSnapshot, ...]:
        return self._done("list_snapshots", "", lambda: tuple(self.snapshots.values())[query.offset:][:query.limit])

    def find_snapshots(self, name: str) -> tuple[VolumeSnapshot, ...]:
        return self._done("find_snapshots", name, lambda: tuple(
            one for one in self.snapshots.values() if one.name == name))

    def create_snapshot(self, new: NewVolumeSnapshot, as_user: bool = False) -> VolumeSnapshot:
        def work() -> VolumeSnapshot:
            made = VolumeSnapshot(id=str(uuid.uuid4()), volume_id=new.volume_id, name=new.name,
                                  description=new.description, status=self.being_snapshot,
                                  size_gb=self._volume(new.volume_id).size_gb)
            self.snapshots[made.id] = made
            return made
        return self._done("create_snapshot", new.volume_id, work)

    def set_snapshot_status(self, snapshot_id: str, status: str, progress: str | None = None, as_user: bool = False
                            ) -> None:
        """Set a snapshot's status; it completes immediately after the host's part."""
        def work() -> None:
            if snapshot_id not in self.snapshots:
                raise errors.volume.SnapshotNotFound(snapshot=snapshot_id)
            if status == "deleting" and progress:
                del self.snapshots[snapshot_id]
                return
            done = AVAILABLE if status == "creating" and progress else status
            self.snapshots[snapshot_id] = msgspec.structs.replace(self.snapshots[snapshot_id], status=done,
                                                                  progress=progress or "")
        self._done("set_snapshot_status", snapshot_id, work)

    def delete_snapshot(self, snapshot_id: str, as_user: bool = False) -> None:
        self._done("delete_snapshot", snapshot_id, lambda: self.snapshots.pop(snapshot_id, None))

    def limits(self, as_user: bool = False) -> VolumeLimits:
        return self._done("limits", "", lambda: VolumeLimits(snapshots_used=len(self.snapshots)))

    # -- attachments

    def reserve(self, volume_id: str, server_uuid: str, known: Collection[str] = (), as_user: bool = False
                ) -> VolumeAttachment:
        return self._done("reserve", volume_id, lambda: self._attach(volume_id, server_uuid, None))

    def attach(self, volume_id: str, server_uuid: str, connector: Mapping[str, Any], mountpoint: str | None = None,
               as_user: bool = False) -> VolumeAttachment:
        return self._done("attach", volume_id, lambda: self._attach(volume_id, server_uuid, connector))

    def connect(self, attachment_id: str, connector: Mapping[str, Any], mountpoint: str | None = None,
                as_user: bool = False) -> VolumeAttachment:
        def work() -> VolumeAttachment:
            found = self._attachment(attachment_id)
            connected = msgspec.structs.replace(found, connection=self._connection(found, connector))
            self.attachments[attachment_id] = connected
            if self.status(found.volume_id) == RESERVED:
                self.set_status(found.volume_id, ATTACHING)
            return self.attachments[attachment_id]
        return self._done("connect", attachment_id, work)

    def complete(self, attachment_id: str, as_user: bool = False) -> None:
        def work() -> None:
            found = self._attachment(attachment_id)
            self.attachments[attachment_id] = msgspec.structs.replace(found, status=ATTACHED)
            self.complete_ones.add(attachment_id)
            self.set_status(found.volume_id, IN_USE)
        self._done("complete", attachment_id, work)

    def get_attachment(self, attachment_id: str, as_user: bool = False) -> VolumeAttachment:
        return self._done("get_attachment", attachment_id, lambda: self._attachment(attachment_id))

    def list_attachments(self, server_uuid: str, volume_id: str | None = None) -> tuple[VolumeAttachment, ...]:
        return self._done("list_attachments", server_uuid, lambda: tuple(
            one for one in self.of_server(server_uuid) if volume_id in (None, one.volume_id)))

    def delete_attachment(self, attachment_id: str, as_user: bool = False) -> None:
        def work() -> None:
            gone = self.attachments.pop(attachment_id, None)
            if gone is None or gone.volume_id not in self.volumes:
                return
            left = [one for one in self.attachments.values() if one.volume_id == gone.volume_id]
            used = any(one.id in self.complete_ones for one in left)
            self.set_status(gone.volume_id, IN_USE if used else RESERVED if left else AVAILABLE)
        self._done("delete_attachment", attachment_id, work)

    # -- inside

    def _done(self, name: str, what: str, work: Callable[[], Any]) -> Any:
        with self._lock:
            self.calls.append((name, what))
            if name in self.fails:
                raise self.fails[name]
            found = work()
            if name in self.lost:
                raise self.lost[name]
            return found

    def _volume(self, volume_id: str) -> Volume:
        if volume_id not in self.volumes:
            raise errors.volume.NotFound(volume=volume_id)
        return self.volumes[volume_id]

    def _attachment(self, attachment_id: str) -> VolumeAttachment:
        if attachment_id not in self.attachments:
            raise errors.volume.AttachmentNotFound(attachment=attachment_id)
        return self.attachments[attachment_id]

    def set_status(self, volume_id: str, status: str) -> None:
        self.volumes[volume_id] = msgspec.structs.replace(self.volumes[volume_id], status=status)

    def _turn(self, volume_id: str, old: str, new: str) -> None:
        if self._volume(volume_id).status != old:
            raise errors.Invalid(f"volume {volume_id} is {self.status(volume_id)}, not {old}")
        self.set_status(volume_id, new)

    def _attach(self, volume_id: str, server_uuid: str, connector: Mapping[str, Any] | None) -> VolumeAttachment:
        volume = self._volume(volume_id)
        mine = [one for one in self.attachments.values() if one.volume_id == volume_id]
        if not volume.multiattach and any(one.server_id != server_uuid for one in mine):
            raise errors.Invalid(f"volume {volume_id} is another server's")
        made = VolumeAttachment(id=str(uuid.uuid4()), volume_id=volume_id, server_id=server_uuid)
        if connector:
            made = msgspec.structs.replace(made, connection=self._connection(made, connector))
        self.attachments[made.id] = made
        if volume.status == AVAILABLE:
            self.set_status(volume_id, RESERVED)
        return made

    def _connection(self, attachment: VolumeAttachment, connector: Mapping[str, Any]) -> VolumeConnection:
        return VolumeConnection(kind=self.kind, data={"host": connector["host"], "volume_id": attachment.volume_id,
                                                      "auth_password": SECRET, **self.data})
