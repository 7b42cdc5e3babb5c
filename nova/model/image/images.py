"""Images as the image service describes them, with the properties that nova interprets."""

from __future__ import annotations

from collections.abc import Mapping

from nova.model.base import Time, Value


class Image(Value):
    """An image of Glance. ``properties`` are the custom ones, as text; ``size_bytes`` is 0 while unknown."""

    id: str
    name: str | None = None
    status: str = "active"
    visibility: str = "public"
    owner: str | None = None
    disk_format: str | None = None
    container_format: str | None = None
    size_bytes: int = 0
    virtual_size_bytes: int = 0
    min_disk_gb: int = 0
    min_ram_mb: int = 0
    checksum: str | None = None
    os_hash_algo: str | None = None
    os_hash_value: str | None = None
    protected: bool = False
    properties: Mapping[str, str] = {}
    created_at: Time | None = None
    updated_at: Time | None = None

    @property
    def kernel_id(self) -> str | None:
        """Image id of the kernel to boot; None if the image contains its kernel."""
        return self.properties.get("kernel_id") or None

    @property
    def ramdisk_id(self) -> str | None:
        """Image id of the kernel's initial RAM disk; None if there is none."""
        return self.properties.get("ramdisk_id") or None


class NewImage(Value):
    """An image without data. The caller chooses ``id``, so that a repeated request creates it only once.

    ``owner`` None: the project of the credentials. ``properties`` are the custom ones, as text.
    """

    id: str
    name: str
    owner: str | None = None
    visibility: str = "private"
    disk_format: str | None = None
    container_format: str | None = None
    min_disk_gb: int = 0
    min_ram_mb: int = 0
    protected: bool = False
    properties: Mapping[str, str] = {}


class ImageQuery(Value):
    """A page of the image proxy of old versions. Filters are by name, as for the image service."""

    filters: Mapping[str, str] = {}
    limit: int | None = None
    marker: str | None = None
