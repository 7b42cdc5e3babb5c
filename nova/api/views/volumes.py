"""Volumes: a server's attachments, and the volume service's resources in old versions."""

from __future__ import annotations

from nova.api.request import Request
from nova.api.view import Free, Out, View, micros_of
from nova.model.volumes import BlockDevice, Volume, VolumeSnapshot

#: An attachment does not have its server, which is in the path.
_SERVER = Out("serverId", lambda device, req: req.named["server_id"], type="string")

ATTACHMENT = View(
    Out("id", "volume_id", until="2.88"),
    Out("attachment_id", "attachment_id", since="2.89"),
    Out("bdm_uuid", "id", since="2.89"),
    Out("device", "device_name"),
    _SERVER,
    Out("volumeId", "volume_id"),
    Out("tag", "tag", since="2.70"),
    Out("delete_on_termination", "delete_on_termination", since="2.79"),
    of=BlockDevice,
)

#: The response of an attach, which kept the ``id`` in all versions.
ATTACHED = View(
    Out("id", "volume_id"),
    Out("device", "device_name"),
    _SERVER,
    Out("volumeId", "volume_id"),
    Out("tag", "tag", since="2.70"),
    Out("delete_on_termination", "delete_on_termination", since="2.79"),
    of=BlockDevice,
)


def _uses(volume: Volume, req: Request) -> list[dict[str, object]]:
    """Return the first server with the volume, or an empty entry, because clients expect one."""
    for use in volume.attachments[:1]:
        return [{"id": volume.id, "volumeId": volume.id, "serverId": use.server_id,
                 **({"device": use.device} if use.device else {})}]
    return [{}]


VOLUME = View(
    Out("id", "id"),
    Out("status", "status"),
    Out("size", "size_gb"),
    Out("availabilityZone", lambda volume, req: volume.availability_zone or None, type=("string", "null")),
    Out("createdAt", micros_of("created_at"), type="string"),
    Out("attachments", _uses, type=[{"id?": "string", "volumeId?": "string", "serverId?": "string",
                                     "device?": "string"}]),
    Out("displayName", "name"),
    Out("displayDescription", "description"),
    Out("volumeType", lambda volume, req: volume.volume_type or None, type=("string", "null")),
    Out("snapshotId", "snapshot_id"),
    Out("metadata", "metadata", type=Free("string")),
    of=Volume,
)

SNAPSHOT = View(
    Out("id", "id"),
    Out("volumeId", "volume_id"),
    Out("status", "status"),
    Out("size", "size_gb"),
    Out("createdAt", micros_of("created_at"), type="string"),
    Out("displayName", "name"),
    Out("displayDescription", "description"),
    of=VolumeSnapshot,
)
