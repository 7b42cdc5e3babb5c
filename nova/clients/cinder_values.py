"""Cinder's answers and requests, and their conversion from and to nova's values. Members that Cinder may omit may also
be null."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import msgspec

from nova.model.volumes import (
    NewVolume,
    NewVolumeSnapshot,
    Volume,
    VolumeAttachment,
    VolumeConnection,
    VolumeEncryption,
    VolumeLimits,
    VolumeSnapshot,
    VolumeUse,
)

#: Cinder's own members of ``connection_info``; the others belong to the back end.
ENVELOPE = frozenset({"driver_volume_type", "attachment_id"})


R = TypeVar("R")
T = TypeVar("T")


@dataclass(frozen=True)
class Resource(Generic[R, T]):
    """A resource in answers: the names of its member and of lists, the type of its record, and its conversion."""

    key: str
    kind: type[R]
    read: Callable[[R], T]
    list_key: str = ""
    links_key: str = ""


class UseJson(msgspec.Struct, frozen=True, kw_only=True):
    """An attachment in a volume."""

    server_id: str | None = None
    attachment_id: str | None = None
    device: str | None = None
    host_name: str | None = None


class VolumeJson(msgspec.Struct, frozen=True, kw_only=True):
    """A volume. ``bootable`` is text; ``shared_targets`` is missing below 3.48, when no targets are shared."""

    id: str
    status: str | None = None
    name: str | None = None
    description: str | None = None
    size: int | None = None
    availability_zone: str | None = None
    created_at: str | None = None
    volume_type: str | None = None
    snapshot_id: str | None = None
    bootable: str | bool | None = None
    multiattach: bool | None = None
    encrypted: bool | None = None
    migration_status: str | None = None
    metadata: Mapping[str, Any] | None = None
    image_metadata: Mapping[str, Any] | None = msgspec.field(name="volume_image_metadata", default=None)
    attachments: tuple[UseJson, ...] | None = None
    shared_targets: bool | None = False
    service_uuid: str | None = None


class SnapshotJson(msgspec.Struct, frozen=True, kw_only=True):
    """A snapshot of a volume."""

    id: str
    volume_id: str | None = None
    status: str | None = None
    progress: str | None = msgspec.field(name="os-extended-snapshot-attributes:progress", default=None)
    size: int | None = None
    name: str | None = None
    description: str | None = None
    created_at: str | None = None
    project_id: str | None = msgspec.field(name="os-extended-snapshot-attributes:project_id", default=None)
    metadata: Mapping[str, Any] | None = None


class AttachmentJson(msgspec.Struct, frozen=True, kw_only=True):
    """An attachment. ``connection_info``: of the back end, flat; missing in lists."""

    id: str
    volume_id: str | None = None
    instance: str | None = None
    status: str | None = None
    connection_info: Mapping[str, Any] | None = None


class EncryptionAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """The encryption of a volume; without a key if it is not encrypted."""

    encryption_key_id: str | None = None
    provider: str | None = None
    cipher: str | None = None
    key_size: int | None = None
    control_location: str | None = None


class AbsoluteLimits(msgspec.Struct, frozen=True):
    """Limits of a project, and their use; -1 is unlimited."""

    snapshots_most: int = msgspec.field(name="maxTotalSnapshots", default=-1)
    snapshots_used: int | None = msgspec.field(name="totalSnapshotsUsed", default=None)


class LimitsJson(msgspec.Struct, frozen=True):
    """The member ``limits`` of its answer."""

    absolute: AbsoluteLimits


class TypeJson(msgspec.Struct, frozen=True):
    """A volume type."""

    id: str
    name: str


def _time(text: str | None) -> datetime.datetime | None:
    """Return a time without zone; Cinder's times are UTC, like nova's."""
    return datetime.datetime.fromisoformat(text).replace(tzinfo=None) if text else None


def _texts(items: Mapping[str, object] | None) -> dict[str, str]:
    return {key: str(value) for key, value in (items or {}).items()}


def volume(one: VolumeJson) -> Volume:
    """Return a volume."""
    return Volume(
        id=one.id, status=one.status or "", name=one.name or "", description=one.description, size_gb=one.size or 0,
        availability_zone=one.availability_zone or "", created_at=_time(one.created_at),
        volume_type=one.volume_type or "", snapshot_id=one.snapshot_id, bootable=str(one.bootable).lower() == "true",
        multiattach=bool(one.multiattach), encrypted=bool(one.encrypted), migration_status=one.migration_status,
        metadata=_texts(one.metadata), image_metadata=_texts(one.image_metadata),
        attachments=tuple(map(_use, one.attachments or ())), shared_targets=one.shared_targets,
        service_uuid=one.service_uuid)


def _use(one: UseJson) -> VolumeUse:
    return VolumeUse(server_id=one.server_id or "", attachment_id=one.attachment_id or "", device=one.device or "",
                     host=one.host_name or "")


def new_volume(new: NewVolume) -> dict[str, object]:
    """Return the JSON of a new volume; unset values are left to Cinder."""
    members = {"size": new.size_gb, "name": new.name, "description": new.description, "snapshot_id": new.snapshot_id,
               "imageRef": new.image_id, "volume_type": new.volume_type, "availability_zone": new.availability_zone,
               "metadata": dict(new.metadata) or None}
    return {key: value for key, value in members.items() if value is not None}


def snapshot(one: SnapshotJson) -> VolumeSnapshot:
    """Return a volume snapshot."""
    return VolumeSnapshot(
        id=one.id, volume_id=one.volume_id or "", status=one.status or "", progress=one.progress or "",
        size_gb=one.size or 0, name=one.name or "", description=one.description, created_at=_time(one.created_at),
        project_id=one.project_id or "", metadata=_texts(one.metadata))


def new_snapshot(new: NewVolumeSnapshot) -> dict[str, object]:
    """Return the JSON of a new volume snapshot. ``force`` is passed unchanged: nova does not request versions from 3.66
    on, which reject it."""
    members = {"volume_id": new.volume_id, "name": new.name, "description": new.description, "force": new.force}
    return members | ({"metadata": dict(new.metadata)} if new.metadata else {})


def attachment(one: AttachmentJson) -> VolumeAttachment:
    """Return an attachment, or an entry of a list (without connection)."""
    info = one.connection_info or {}
    kind = info.get("driver_volume_type")
    data = {key: value for key, value in info.items() if key not in ENVELOPE}
    return VolumeAttachment(
        id=one.id, volume_id=one.volume_id or "", server_id=one.instance or "", status=one.status or "",
        connection=VolumeConnection(kind=kind, data=data) if kind else None)


def encryption(one: EncryptionAnswer) -> VolumeEncryption | None:
    """Return the encryption; None if the volume is not encrypted."""
    if not one.encryption_key_id:
        return None
    return VolumeEncryption(key_id=one.encryption_key_id, provider=one.provider or "", cipher=one.cipher,
                            key_size=one.key_size, control_location=one.control_location or "front-end")


def limits(one: AbsoluteLimits) -> VolumeLimits:
    """Return the limits of a project's snapshots."""
    most = one.snapshots_most
    return VolumeLimits(snapshots_used=one.snapshots_used or 0, snapshots_most=None if most < 0 else most)


VOLUME = Resource("volume", VolumeJson, volume, "volumes", "volumes_links")
SNAPSHOT = Resource("snapshot", SnapshotJson, snapshot, "snapshots", "snapshots_links")
ATTACHMENT = Resource("attachment", AttachmentJson, attachment, "attachments", "attachments_links")
TYPE = Resource("volume_type", TypeJson, lambda one: one, "volume_types", "volume_type_links")
LIMITS = Resource("limits", LimitsJson, lambda one: limits(one.absolute))
SAVED_ID = Resource("save_volume_id", str, str)
