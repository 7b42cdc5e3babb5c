"""JSON schemas of FakeGlance, by which clients distinguish an image's members from its properties."""

from __future__ import annotations

from nova.devel.image.lists import MEMBER_STATUSES
from nova.devel.image.records import CONTAINER_FORMATS, DISK_FORMATS, LONGEST, VISIBILITIES

_NULL_TEXT = {"type": ["null", "string"], "maxLength": LONGEST}
_FIXED_TEXT = {"type": ["null", "string"], "readOnly": True}
_FIXED_NUMBER = {"type": ["null", "integer"], "readOnly": True}

IMAGE: dict[str, object] = {"name": "image", "properties": {
    "id": {"type": "string"}, "name": _NULL_TEXT, "owner": _NULL_TEXT,
    "status": {"type": "string", "readOnly": True, "enum": ["queued", "saving", "active", "killed", "deleted",
                                                            "uploading", "importing", "pending_delete", "deactivated"]},
    "visibility": {"type": "string", "enum": list(VISIBILITIES)},
    "protected": {"type": "boolean"}, "os_hidden": {"type": "boolean"},
    "disk_format": {"type": ["null", "string"], "enum": [None, *DISK_FORMATS]},
    "container_format": {"type": ["null", "string"], "enum": [None, *CONTAINER_FORMATS]},
    "min_disk": {"type": "integer"}, "min_ram": {"type": "integer"},
    "tags": {"type": "array", "items": {"type": "string", "maxLength": LONGEST}},
    "size": _FIXED_NUMBER, "virtual_size": _FIXED_NUMBER,
    **dict.fromkeys(("checksum", "os_hash_algo", "os_hash_value", "created_at", "updated_at", "self", "file", "schema",
                     "direct_url", "stores"), _FIXED_TEXT),
}, "additionalProperties": {"type": "string"}}

MEMBER: dict[str, object] = {"name": "member", "properties": {
    "member_id": {"type": "string"}, "image_id": {"type": "string"}, "created_at": {"type": "string"},
    "updated_at": {"type": "string"}, "schema": {"type": "string"},
    "status": {"type": "string", "enum": list(MEMBER_STATUSES)}}}


def _list_of(name: str, item: dict[str, object]) -> dict[str, object]:
    link = {"type": "string"}
    return {"name": name, "properties": {name: {"type": "array", "items": item}, "first": link, "next": link,
                                         "schema": link}}


SCHEMAS: dict[str, dict[str, object]] = {
    "image": IMAGE, "images": _list_of("images", IMAGE), "member": MEMBER, "members": _list_of("members", MEMBER)}
