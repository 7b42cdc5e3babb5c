"""Store of FakeGlance: records, members and data of images, and the callers' access to them."""

from __future__ import annotations

import threading
from typing import cast

import msgspec

from nova import decoding
from nova.devel.image.data import DataFolder
from nova.devel.image.lists import may_see
from nova.devel.image.records import ImageMembership, ImageRecord
from nova.devel.service import FakeCall, FakeError, TokenOwner
from nova.model.base import Json


class FakeImageStore:
    """Store of images, changed under ``lock`` only. ``images``: by id; ``members``: by the image's id and the
    member's."""

    def __init__(self, data: DataFolder, lock: threading.RLock) -> None:
        self.data, self.lock = data, lock
        self.images: dict[str, ImageRecord] = {}
        self.used_ids: set[str] = set()
        self.members: dict[str, dict[str, ImageMembership]] = {}

    def packed(self) -> bytes:
        """Return all records; data are stored separately."""
        return msgspec.msgpack.encode((self.images, self.used_ids, self.members))

    def restore(self, packed: bytes) -> None:
        """Load packed records. Uploads that were in progress count as failed."""
        images, self.used_ids, members = decoding.from_msgpack(packed, _PACKED)
        self.images = cast(dict[str, ImageRecord], images)
        self.members = cast(dict[str, dict[str, ImageMembership]], members)
        for image in self.images.values():
            if image["status"] == "saving":
                image["status"] = "queued"

    def insert(self, image: ImageRecord) -> ImageRecord:
        """Add a new image. Raises 409 for an id that is or was in use: an upload to the old image may still run."""
        if image["id"] in self.used_ids:
            raise FakeError(409, f"Image ID {image['id']} already exists!")
        self.used_ids.add(image["id"])
        self.images[image["id"]] = image
        return image

    def seen(self, call: FakeCall) -> ImageRecord:
        """Return the image in the path. Raises 404, also if the caller may not see it."""
        image_id = call.named["image_id"]
        image = self.images.get(image_id)
        if image is None or not may_see(image, self.members.get(image_id, {}), call.caller):
            raise FakeError(404, f"Failed to find image {image_id}")
        return image

    def own(self, call: FakeCall) -> ImageRecord:
        """Return the image in the path for a change. Raises 403 for another project's image."""
        image, caller = self.seen(call), call.caller
        if not caller.is_admin and (caller.project_id is None or image["owner"] != caller.project_id):
            raise FakeError(403, f"You are not permitted to modify image {image['id']}: it belongs to another project.")
        check_writer(caller)
        return image


Records = dict[str, dict[str, Json]]  # what is loaded, whose members are not checked
_PACKED: type[tuple[Records, set[str], dict[str, Records]]] = tuple[Records, set[str], dict[str, Records]]


def check_writer(caller: TokenOwner) -> None:
    """Raise 403 for a token that may only read, or has no project to own images."""
    if not caller.roles - {"reader"} or (caller.project_id is None and not caller.is_admin):
        raise FakeError(403, "You are not permitted to create or change images: a role in a project is required.")
