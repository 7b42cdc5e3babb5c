"""Records of FakeGlance's members and images, in the form of the Image API's JSON."""

from __future__ import annotations

from typing import TypedDict


#: A user's own properties are further members, as text.
class ImageRecord(TypedDict):
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
