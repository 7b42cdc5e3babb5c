"""Image records in the form of Glance v2: members, their valid values, and changes by a JSON patch."""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable, Mapping
from typing import NamedTuple, TypedDict, TypeGuard, cast

from nova.devel.service import FakeError, TokenOwner
from nova.model.base import JsonValue, utcnow

VISIBILITIES = ("public", "private", "shared", "community")
DISK_FORMATS = ("ami", "ari", "aki", "vhd", "vhdx", "vmdk", "raw", "qcow2", "vdi", "iso", "ploop", "gpt")
CONTAINER_FORMATS = ("ami", "ari", "aki", "bare", "ovf", "ova", "docker", "compressed")
LONGEST = 255  # characters of a name, a tag or a property's name
MOST_NUMBER = 2**31 - 1
_UUID = re.compile("[0-9a-f]{8}-([0-9a-f]{4}-){3}[0-9a-f]{12}")


class ImageRecord(TypedDict):
    """An image. A user's own properties are further members, as text."""

    id: str
    name: str | None
    owner: str | None
    visibility: str
    status: str
    disk_format: str | None
    container_format: str | None
    min_disk: int
    min_ram: int
    protected: bool
    os_hidden: bool
    tags: list[str]
    size: int | None
    virtual_size: int | None
    checksum: str | None
    os_hash_algo: str | None
    os_hash_value: str | None
    created_at: str
    updated_at: str
    self: str
    file: str
    schema: str


class ImageMembership(TypedDict):
    """A project that an image is shared with."""

    member_id: str
    image_id: str
    status: str
    created_at: str
    updated_at: str
    schema: str


class ImageMember(NamedTuple):
    """A member of a record. ``fits`` checks a value; ``wanted`` describes the valid values. ``default``: of a new
    image."""

    fits: Callable[[object], bool]
    wanted: str
    default: JsonValue = None


def _is_text(value: object) -> TypeGuard[str]:
    """Return whether the value is text that Glance's database accepts: at most three bytes per character."""
    return isinstance(value, str) and all(ord(letter) <= 0xFFFF for letter in value)


def _one_of(names: tuple[str, ...], or_null: bool = True) -> ImageMember:
    return ImageMember(lambda value: value in list(names) or (or_null and value is None), f"one of {', '.join(names)}")


def _number(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= MOST_NUMBER


def _tags(value: object) -> bool:
    return isinstance(value, list) and all(_is_text(one) and len(one) <= LONGEST for one in value)


_NUMBER = ImageMember(_number, f"an integer from 0 to {MOST_NUMBER}", 0)
_YES_NO = ImageMember(lambda value: isinstance(value, bool), "a boolean", False)
#: Members that clients set.
MEMBERS: dict[str, ImageMember] = {
    "name": ImageMember(lambda value: value is None or (_is_text(value) and len(value) <= LONGEST),
                        f"a string of at most {LONGEST} characters, of at most 3 bytes each in UTF-8"),
    "visibility": _one_of(VISIBILITIES, or_null=False)._replace(default="shared"),
    "owner": ImageMember(lambda value: value is None or (_is_text(value) and len(value) <= LONGEST), "a project's id"),
    "disk_format": _one_of(DISK_FORMATS), "container_format": _one_of(CONTAINER_FORMATS),
    "min_disk": _NUMBER, "min_ram": _NUMBER, "protected": _YES_NO, "os_hidden": _YES_NO,
    "tags": ImageMember(_tags, f"an array of strings of at most {LONGEST} characters")}
#: Members that only Glance sets.
READ_ONLY = ("status", "size", "virtual_size", "checksum", "os_hash_algo", "os_hash_value", "created_at", "updated_at",
             "self", "file", "schema", "stores", "direct_url", "locations")
NO_DATA: Mapping[str, JsonValue] = {"status": "queued", "size": None, "virtual_size": None, "checksum": None,
                               "os_hash_algo": None, "os_hash_value": None}


def new(given: JsonValue, owner: TokenOwner) -> ImageRecord:
    """Return the record of a new image. Raises 400, which names the member, or 403 if the caller may not set it."""
    if not isinstance(given, dict):
        raise FakeError(400, "Provided object does not match schema 'image': an object is required.")
    for name, value in given.items():
        if name != "id":
            check(name, value)
    image_id = given.get("id", str(uuid.uuid4()))
    if not isinstance(image_id, str) or not _UUID.fullmatch(image_id):
        raise FakeError(400, "Provided object does not match schema 'image': id: a UUID is required.")
    now = time_text()
    members = {name: member.default for name, member in MEMBERS.items()}
    members |= {**NO_DATA, "owner": owner.project_id, **given, "id": image_id, "created_at": now, "updated_at": now,
              "self": f"/v2/images/{image_id}", "file": f"/v2/images/{image_id}/file", "schema": "/v2/schemas/image"}
    image = cast(ImageRecord, members)
    image["tags"] = sorted(set(image["tags"] or ()))
    _check_rights(owner.project_id, "", image, owner)
    return image


def check(name: str, value: object) -> None:
    """Check a member or custom property. Raises 400 or 403."""
    if name in READ_ONLY or name == "id":
        raise FakeError(403, f"Attribute '{name}' is read-only.")
    if not 0 < len(name) <= LONGEST:
        raise FakeError(400, f"Provided object does not match schema 'image': names have 1 to {LONGEST} characters.")
    member = MEMBERS.get(name)
    if member is None and not _is_text(value):
        raise FakeError(400, f"Provided object does not match schema 'image': {name}: a string is required.")
    if member is not None and not member.fits(value):
        raise FakeError(400, f"Provided object does not match schema 'image': {name}: {member.wanted} is required.")


VERBS = ("add", "replace", "remove")


def patched(old: ImageRecord, patch: JsonValue, owner: TokenOwner) -> ImageRecord:
    """Return the record after a patch of ``openstack-images-v2.1-json-patch``. Raises 400, 403, or 409 for a missing
    property."""
    if not isinstance(patch, list):
        raise FakeError(400, "The request body must be a JSON array of operation objects.")
    changed: dict[str, object] = dict(old)
    for operation in patch:
        _apply(changed, operation)
    image = cast(ImageRecord, changed)
    if image["visibility"] != old["visibility"] or image["owner"] != old["owner"]:
        _check_rights(old["owner"], old["visibility"], image, owner)
    if old["status"] != "queued" and (image["disk_format"], image["container_format"]) != (
            old["disk_format"], old["container_format"]):
        raise FakeError(403, "Attributes disk_format and container_format cannot be changed after the upload.")
    return {**image, "tags": sorted(set(image["tags"])), "updated_at": time_text()}


def modern(patch: JsonValue) -> JsonValue:
    """Convert a patch of ``openstack-images-v2.0-json-patch`` to v2.1: ``{"add": "/name", "value": 1}`` becomes ``op``
    and ``path``. Other operations are not changed."""
    if not isinstance(patch, list):
        return patch
    return [_modern_operation(operation) if isinstance(operation, dict) else operation for operation in patch]


def _modern_operation(operation: dict[str, JsonValue]) -> dict[str, JsonValue]:
    verb = next((verb for verb in VERBS if verb in operation), None)
    if verb is None:
        return operation
    return {**{name: value for name, value in operation.items() if name != verb}, "op": verb, "path": operation[verb]}


def _apply(image: dict[str, object], operation: JsonValue) -> None:
    if not isinstance(operation, dict) or operation.get("op") not in VERBS:
        raise FakeError(400, "Operations must be objects whose 'op' is add, replace or remove.")
    path, verb = operation.get("path"), operation["op"]
    if not isinstance(path, str) or not path.startswith("/") or "/" in path[1:]:
        raise FakeError(400, f"Invalid JSON pointer for this resource: '{path}'.")
    name = path[1:].replace("~1", "/").replace("~0", "~")
    if verb != "add" and name not in image:
        raise FakeError(409, f"Property {name} does not exist.")
    if verb == "remove":
        if name in MEMBERS or name in READ_ONLY or name == "id":
            raise FakeError(403, f"Property {name} may not be removed.")
        del image[name]
        return
    if "value" not in operation:
        raise FakeError(400, f"Operation '{verb}' requires a member named 'value'.")
    check(name, operation["value"])
    image[name] = operation["value"]


def _check_rights(project_id: str | None, visibility: str, new: ImageRecord, owner: TokenOwner) -> None:
    """Raise 403 unless the caller may publish the image or set its owner: only administrators may."""
    if owner.is_admin:
        return
    if new["visibility"] == "public" and visibility != "public":
        raise FakeError(403, "You are not authorized to complete publicize_image action.")
    if new["owner"] != project_id:
        raise FakeError(403, "You are not permitted to set the owner of an image to another project.")


def time_text() -> str:
    """Return the current time in Glance's format."""
    return utcnow().strftime("%Y-%m-%dT%H:%M:%SZ")
