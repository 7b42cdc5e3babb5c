"""Volumes and their snapshots: the proxy of old versions to the volume service."""

from __future__ import annotations

from collections.abc import Mapping

from nova import errors
from nova.api.request import Answer, Request
from nova.api.view import answers
from nova.api.views.volumes import SNAPSHOT, VOLUME
from nova.model.base import JsonValue
from nova.model.volumes import NewVolume, NewVolumeSnapshot, Volume, VolumeQuery, VolumeSnapshot
from nova.web.formats import is_uuid


@answers({"volumes": [VOLUME]})
def index(req: Request) -> dict[str, object]:
    """List the project's volumes, in the same form as the list with details."""
    return {"volumes": VOLUME.all(req.conductor.list_volumes(_page(req)), req)}


@answers({"volumes": [VOLUME]})
def detail(req: Request) -> dict[str, object]:
    """List the project's volumes."""
    return index(req)


@answers({"volume": VOLUME})
def show(req: Request, volume_id: str) -> dict[str, object]:
    """Show a volume. volume.not_found (404)."""
    return {"volume": VOLUME(req.conductor.get_volume(_volume_id(volume_id)), req)}


@answers({"volume": VOLUME})
def create(req: Request) -> Answer:
    """Create a volume, empty or from a snapshot. Raises NotFound (404): the snapshot; OverQuota (403); Invalid
    (400)."""
    asked = req.body["volume"]
    made: Volume = req.conductor.create_volume(NewVolume(
        size_gb=asked["size"], name=asked.get("display_name", ""), description=asked.get("display_description"),
        snapshot_id=asked.get("snapshot_id"), volume_type=asked.get("volume_type"),
        availability_zone=asked.get("availability_zone"), metadata=_metadata(asked.get("metadata", {}))))
    return Answer({"volume": VOLUME(made, req)}, headers=(("Location", req.links.self_of("os-volumes", made.id)),))


def delete(req: Request, volume_id: str) -> None:
    """Delete a volume. volume.not_found (404); Invalid (400): it is in use."""
    req.conductor.delete_volume(_volume_id(volume_id))


@answers({"snapshots": [SNAPSHOT]})
def snapshots(req: Request) -> dict[str, object]:
    """List the project's volume snapshots, in the same form as the list with details."""
    return {"snapshots": SNAPSHOT.all(req.conductor.list_volume_snapshots(_page(req)), req)}


@answers({"snapshots": [SNAPSHOT]})
def snapshot_details(req: Request) -> dict[str, object]:
    """List the project's snapshots of volumes."""
    return snapshots(req)


@answers({"snapshot": SNAPSHOT})
def snapshot(req: Request, snapshot_id: str) -> dict[str, object]:
    """Show a snapshot of a volume. Raises volume.SnapshotNotFound (404)."""
    return {"snapshot": SNAPSHOT(req.conductor.get_volume_snapshot(_snapshot_id(snapshot_id)), req)}


@answers({"snapshot": SNAPSHOT})
def create_snapshot(req: Request) -> dict[str, object]:
    """Create a snapshot of a volume; with ``force`` also of a volume in use. Raises NotFound (404): the volume;
    OverQuota (403); Invalid (400)."""
    asked = req.body["snapshot"]
    made: VolumeSnapshot = req.conductor.create_volume_snapshot(NewVolumeSnapshot(
        volume_id=_volume_id(asked["volume_id"]), name=asked.get("display_name", ""),
        description=asked.get("display_description"), force=asked.get("force", False)))
    return {"snapshot": SNAPSHOT(made, req)}


def delete_snapshot(req: Request, snapshot_id: str) -> None:
    """Delete a snapshot of a volume. Raises volume.SnapshotNotFound (404); Invalid (400): it is in use."""
    req.conductor.delete_volume_snapshot(_snapshot_id(snapshot_id))


def _page(req: Request) -> VolumeQuery:
    return VolumeQuery(limit=req.limit(), offset=req.query.one("offset", 0))


def _volume_id(text: str) -> str:
    """Return the volume's id. An id that is not a UUID is not found, without a call of the volume service."""
    if not is_uuid(text):
        raise errors.volume.NotFound(volume=text)
    return text


def _snapshot_id(text: str) -> str:
    if not is_uuid(text):
        raise errors.volume.SnapshotNotFound(snapshot=text)
    return text


def _metadata(items: Mapping[str, JsonValue]) -> Mapping[str, str]:
    texts: dict[str, str] = {}
    for key, value in items.items():
        if not isinstance(value, str):
            raise errors.api.BadInput(field=f"volume.metadata.{key}", value=value, reason="It must be text.")
        texts[key] = value
    return texts
