"""The volume service's client and the service in one (``nova.clients.cinder.Cinder``), in memory, failing on demand."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable, Collection, Mapping
from typing import Any

import msgspec

from nova import errors
from nova.model.base import utcnow
from nova.model.volumes import (
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
    """The key manager's client (``nova.clients.key_manager.VolumeKeys``). ``users``, ``ours``: by their ids, the keys
    that users' tokens read, and that we may read ourselves. ``asked``: (key, as a user)."""

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
    """``fails``: by the name of a call, what it raises (as long as it stands there) before anything is done; ``lost``:
    the same after it is done. ``calls``: (name, volume or attachment)."""

    def __init__(self) -> None:
        self.volumes: dict[str, Volume] = {}
        self.snapshots: dict[str, VolumeSnapshot] = {}
        self.attachments: dict[str, VolumeAttachment] = {}
        self.encryptions: dict[str, VolumeEncryption] = {}
        self.complete_ones: set[str] = set()
        self.fails: dict[str, errors.NovaError] = {}
        self.lost: dict[str, errors.NovaError] = {}
        self.calls: list[tuple[str, str]] = []
        self.being_made = AVAILABLE  # the status of what is made
        self.kind = "fake"  # what connections are of
        self._lock = threading.RLock()

    # -- what a test does and looks at

    def add(self, **fields: Any) -> str:
        volume = Volume(**{"id": str(uuid.uuid4()), "size_gb": 1, "created_at": utcnow(), **fields})
        self.volumes[volume.id] = volume
        return volume.id

    def status(self, volume_id: str) -> str:
        return self.volumes[volume_id].status

    def of_server(self, server_uuid: str) -> list[VolumeAttachment]:
        return [one for one in self.attachments.values() if one.server_id == server_uuid]

    def hosts(self, volume_id: str) -> list[str]:
        """Those that may use it now."""
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
            del self.volumes[volume_id]
        self._done("delete", volume_id, work)

    def begin_detaching(self, volume_id: str, as_user: bool = False) -> None:
        self._done("begin_detaching", volume_id, lambda: self._turn(volume_id, IN_USE, DETACHING))

    def roll_detaching(self, volume_id: str, as_user: bool = False) -> None:
        self._done("roll_detaching", volume_id, lambda: self._turn(volume_id, DETACHING, IN_USE))

    # -- snapshots

    def get_snapshot(self, snapshot_id: str, as_user: bool = False) -> VolumeSnapshot:
        def work() -> VolumeSnapshot:
            if snapshot_id not in self.snapshots:
                raise errors.volume.SnapshotNotFound(snapshot=snapshot_id)
            return self.snapshots[snapshot_id]
        return self._done("get_snapshot", snapshot_id, work)

    def list_snapshots(self, query: VolumeQuery, as_user: bool = False) -> tuple[VolumeSnapshot, ...]:
        return self._done("list_snapshots", "", lambda: tuple(self.snapshots.values())[query.offset:][:query.limit])

    def create_snapshot(self, new: NewVolumeSnapshot, as_user: bool = False) -> VolumeSnapshot:
        def work() -> VolumeSnapshot:
            made = VolumeSnapshot(id=str(uuid.uuid4()), volume_id=new.volume_id, name=new.name,
                                  size_gb=self._volume(new.volume_id).size_gb)
            self.snapshots[made.id] = made
            return made
        return self._done("create_snapshot", new.volume_id, work)

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
                self._set(found.volume_id, ATTACHING)
            return self.attachments[attachment_id]
        return self._done("connect", attachment_id, work)

    def complete(self, attachment_id: str, as_user: bool = False) -> None:
        def work() -> None:
            self.complete_ones.add(attachment_id)
            self._set(self._attachment(attachment_id).volume_id, IN_USE)
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
            self._set(gone.volume_id, IN_USE if used else RESERVED if left else AVAILABLE)
        self._done("delete_attachment", attachment_id, work)

    # -- within

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

    def _set(self, volume_id: str, status: str) -> None:
        self.volumes[volume_id] = msgspec.structs.replace(self.volumes[volume_id], status=status)

    def _turn(self, volume_id: str, old: str, new: str) -> None:
        if self._volume(volume_id).status != old:
            raise errors.Invalid(f"volume {volume_id} is {self.status(volume_id)}, not {old}")
        self._set(volume_id, new)

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
            self._set(volume_id, RESERVED)
        return made

    def _connection(self, attachment: VolumeAttachment, connector: Mapping[str, Any]) -> VolumeConnection:
        return VolumeConnection(kind=self.kind, data={"host": connector["host"], "volume_id": attachment.volume_id,
                                                      "auth_password": SECRET})
