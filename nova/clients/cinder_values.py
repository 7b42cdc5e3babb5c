"""Conversion between Cinder's JSON and nova's values."""

from __future__ import annotations

import datetime
from collections.abc import Mapping

from nova.model.base import Json
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

Body = Mapping[str, Json]

#: Cinder's own members of ``connection_info``; the others belong to the back end.
ENVELOPE = frozenset({"driver_volume_type", "attachment_id"})


def _time(text: str | None) -> datetime.datetime | None:
    """Return a time without zone; Cinder's times are UTC, like nova's."""
    return datetime.datetime.fromisoformat(text).replace(tzinfo=None) if text else None


def _texts(body: Body | None) -> dict[str, str]:
    return {key: str(value) for key, value in (body or {}).items()}


def volume(body: Body) -> Volume:
    """Return a volume from ``volume``. ``bootable`` is text there; ``shared_targets`` is missing below 3.48, when no
    targets are shared."""
    return Volume(
        id=body["id"], status=body.get("status") or "", name=body.get("name") or "",
        description=body.get("description"), size_gb=body.get("size") or 0,
        availability_zone=body.get("availability_zone") or "", created_at=_time(body.get("created_at")),
        volume_type=body.get("volume_type") or "", snapshot_id=body.get("snapshot_id"),
        bootable=str(body.get("bootable")).lower() == "true", multiattach=bool(body.get("multiattach")),
        encrypted=bool(body.get("encrypted")), migration_status=body.get("migration_status"),
        metadata=_texts(body.get("metadata")), image_metadata=_texts(body.get("volume_image_metadata")),
        attachments=tuple(map(_use, body.get("attachments") or ())), shared_targets=body.get("shared_targets", False),
        service_uuid=body.get("service_uuid"))


def _use(body: Body) -> VolumeUse:
    return VolumeUse(server_id=body.get("server_id") or "", attachment_id=body.get("attachment_id") or "",
                     device=body.get("device") or "", host=body.get("host_name") or "")


def new_volume(new: NewVolume) -> dict[str, Json]:
    """Return the JSON of a new volume; unset values are left to Cinder."""
    members = {"size": new.size_gb, "name": new.name, "description": new.description, "snapshot_id": new.snapshot_id,
               "imageRef": new.image_id, "volume_type": new.volume_type, "availability_zone": new.availability_zone,
               "metadata": dict(new.metadata) or None}
    return {key: value for key, value in members.items() if value is not None}


def snapshot(body: Body) -> VolumeSnapshot:
    """Return a volume snapshot from ``snapshot``."""
    return VolumeSnapshot(
        id=body["id"], volume_id=body.get("volume_id") or "", status=body.get("status") or "",
        progress=body.get("os-extended-snapshot-attributes:progress") or "", size_gb=body.get("size") or 0,
        name=body.get("name") or "", description=body.get("description"), created_at=_time(body.get("created_at")),
        project_id=body.get("os-extended-snapshot-attributes:project_id") or "", metadata=_texts(body.get("metadata")))


def new_snapshot(new: NewVolumeSnapshot) -> dict[str, Json]:
    """Return the JSON of a new volume snapshot. ``force`` is passed unchanged: nova does not request versions from 3.66
    on, which reject it."""
    members = {"volume_id": new.volume_id, "name": new.name, "description": new.description, "force": new.force}
    return members | ({"metadata": dict(new.metadata)} if new.metadata else {})


def attachment(body: Body) -> VolumeAttachment:
    """Return an attachment from ``attachment``, or from an entry of a list (without connection). Its
    ``connection_info`` is flat."""
    info = body.get("connection_info") or {}
    kind = info.get("driver_volume_type")
    data = {key: value for key, value in info.items() if key not in ENVELOPE}
    return VolumeAttachment(
        id=body["id"], volume_id=body.get("volume_id") or "", server_id=body.get("instance") or "",
        status=body.get("status") or "", connection=VolumeConnection(kind=kind, data=data) if kind else None)


def encryption(body: Body) -> VolumeEncryption | None:
    """Return the encryption; None if the volume is not encrypted."""
    key_id = body.get("encryption_key_id")
    if not key_id:
        return None
    return VolumeEncryption(key_id=key_id, provider=body.get("provider") or "", cipher=body.get("cipher"),
                            key_size=body.get("key_size"), control_location=body.get("control_location") or "front-end")


def limits(body: Body) -> VolumeLimits:
    """Return limits from ``limits.absolute``, where -1 means unlimited."""
    most = body.get("maxTotalSnapshots", -1)
    return VolumeLimits(snapshots_used=body.get("totalSnapshotsUsed") or 0, snapshots_most=None if most < 0 else most)
