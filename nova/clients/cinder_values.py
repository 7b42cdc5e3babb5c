"""Cinder's JSON and our values."""

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

#: Members of ``connection_info`` that are Cinder's own; the others are the back end's words.
ENVELOPE = frozenset({"driver_volume_type", "attachment_id"})


def _time(text: str | None) -> datetime.datetime | None:
    """Cinder's times are UTC; ours as well, without zone."""
    return datetime.datetime.fromisoformat(text).replace(tzinfo=None) if text else None


def _texts(body: Body | None) -> dict[str, str]:
    return {key: str(value) for key, value in (body or {}).items()}


def volume(body: Body) -> Volume:
    """Of ``volume``. ``bootable`` is text there; ``shared_targets`` is missing below 3.48: then nothing is shared."""
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
    """What is not said is left to Cinder."""
    members = {"size": new.size_gb, "name": new.name, "description": new.description, "snapshot_id": new.snapshot_id,
               "imageRef": new.image_id, "volume_type": new.volume_type, "availability_zone": new.availability_zone,
               "metadata": dict(new.metadata) or None}
    return {key: value for key, value in members.items() if value is not None}


def snapshot(body: Body) -> VolumeSnapshot:
    """Of ``snapshot``."""
    return VolumeSnapshot(
        id=body["id"], volume_id=body.get("volume_id") or "", status=body.get("status") or "",
        progress=body.get("os-extended-snapshot-attributes:progress") or "", size_gb=body.get("size") or 0,
        name=body.get("name") or "", description=body.get("description"), created_at=_time(body.get("created_at")),
        project_id=body.get("os-extended-snapshot-attributes:project_id") or "", metadata=_texts(body.get("metadata")))


def new_snapshot(new: NewVolumeSnapshot) -> dict[str, Json]:
    """``force`` goes as it is: versions from 3.66 on, which refuse it, are not asked for."""
    members = {"volume_id": new.volume_id, "name": new.name, "description": new.description, "force": new.force}
    return members | ({"metadata": dict(new.metadata)} if new.metadata else {})


def attachment(body: Body) -> VolumeAttachment:
    """Of ``attachment``, or of an entry of their list (which has no connection). Its ``connection_info`` is flat."""
    info = body.get("connection_info") or {}
    kind = info.get("driver_volume_type")
    data = {key: value for key, value in info.items() if key not in ENVELOPE}
    return VolumeAttachment(
        id=body["id"], volume_id=body.get("volume_id") or "", server_id=body.get("instance") or "",
        status=body.get("status") or "", connection=VolumeConnection(kind=kind, data=data) if kind else None)


def encryption(body: Body) -> VolumeEncryption | None:
    """None: the volume is not encrypted."""
    key_id = body.get("encryption_key_id")
    if not key_id:
        return None
    return VolumeEncryption(key_id=key_id, provider=body.get("provider") or "", cipher=body.get("cipher"),
                            key_size=body.get("key_size"), control_location=body.get("control_location") or "front-end")


def limits(body: Body) -> VolumeLimits:
    """Of ``limits.absolute``. -1 there: no limit."""
    most = body.get("maxTotalSnapshots", -1)
    return VolumeLimits(snapshots_used=body.get("totalSnapshotsUsed") or 0, snapshots_most=None if most < 0 else most)
