"""Bodies and queries of volumes, their snapshots, and a server's attachments."""

from __future__ import annotations

from nova.api.schemas.server_parts import TAG
from nova.web.schema import ACCEPT, Body, Query, param, row
from nova.web.specs import Rules

_PAGE = (param("limit", "integer_like", min_length=1, min=0), param("offset", "integer_like", min_length=1, min=0))
_DEVICE: Rules = {"pattern": r"(^/dev/x{0,1}[a-z]{0,1}d{0,1})([a-z]+)[0-9]*$"}
_SOME: Rules = {"min_length": 1}

# a server's attachments

ATTACHMENTS_QUERY = Query(*_PAGE, refuse_unknown="2.75")

ATTACH = Body(
    row("volumeAttachment", "object", required=True),
    row("volumeAttachment.volumeId", "string", format="uuid", required=True),
    row("volumeAttachment.device", ("string", "null"), **_DEVICE),
    row("volumeAttachment.tag", "string", **TAG, since="2.49"),
    row("volumeAttachment.delete_on_termination", "boolean_like", since="2.79"))

UPDATE = Body(
    row("volumeAttachment", "object", required=True),
    row("volumeAttachment.volumeId", "string", format="uuid", required=True),
    row("volumeAttachment.device", ("string", "null"), **_DEVICE, since="2.85"),
    row("volumeAttachment.tag", "string", **TAG, since="2.85"),
    row("volumeAttachment.delete_on_termination", "boolean_like", since="2.85"),
    row("volumeAttachment.serverId", "string", format="uuid", since="2.85"),
    row("volumeAttachment.id", "string", format="uuid", since="2.85"))

# the proxy of old versions to the volume service

LIST_QUERY = Query(*_PAGE)

CREATE = Body(
    row("volume", "object", required=True),
    row("volume.volume_type", "string"),
    row("volume.metadata", "object", unknown=ACCEPT),
    row("volume.snapshot_id", "string"),
    row("volume.size", "integer_like", min=1, required=True),
    row("volume.availability_zone", "string"),
    row("volume.display_name", "string"),
    row("volume.display_description", "string"))

CREATE_SNAPSHOT = Body(
    row("snapshot", "object", required=True),
    row("snapshot.volume_id", "string", required=True),
    row("snapshot.force", "boolean_like"),
    row("snapshot.display_name", "string"),
    row("snapshot.display_description", "string"))

# requests of the volume service

CREATE_ASSISTED = Body(
    row("snapshot", "object", required=True),
    row("snapshot.volume_id", "string", **_SOME, required=True),
    row("snapshot.create_info", "object", required=True),
    row("snapshot.create_info.snapshot_id", "string", **_SOME, required=True),
    row("snapshot.create_info.type", "string", allowed=("qcow2",), required=True),
    row("snapshot.create_info.new_file", "string", **_SOME, required=True),
    row("snapshot.create_info.id", "string", **_SOME))

DELETE_ASSISTED = Query(param("delete_info"), refuse_unknown="2.75")
