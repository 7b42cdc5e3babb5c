"""Bundles: images that a client split in parts, encrypted, and described in a manifest, like EC2's image tools."""

from __future__ import annotations

from nova.model.base import Json, Value

MACHINE, KERNEL, RAMDISK = "ami", "aki", "ari"  # Glance's container formats of such images
#: Value of a manifest's kernel or RAM disk id if its image itself is a kernel or RAM disk.
ITSELF = "true"


class BundleMapping(Value):
    """A device mapping of a guest, for example ``ami`` and ``sda1``."""

    virtual: str
    device: str


class BundleFacts(Value):
    """Facts of a manifest, for the registration. ``kernel_id`` and ``ramdisk_id`` are EC2's (``aki-...``); None if the
    manifest has none, or if its image itself is one. ``container_format``: ``ami``, ``aki`` or ``ari``. ``size``: of
    the image, in bytes; None if the manifest lacks it."""

    name: str | None
    architecture: str
    container_format: str
    kernel_id: str | None = None
    ramdisk_id: str | None = None
    mappings: tuple[BundleMapping, ...] = ()
    parts: int = 0
    size: int | None = None


class RegisterBundle(Value):
    """Order to create an image from a bundle. ``location``: the manifest's ``bucket/path``, in a bucket of the project.

    ``kernel_image_id`` and ``ramdisk_image_id`` are the image service's. ``block_device_mapping`` is JSON and stored
    unchanged. ``architecture`` None: that of the manifest. ``name`` None: the location is the name.
    """

    location: str
    project_id: str
    name: str | None = None
    description: str | None = None
    architecture: str | None = None
    kernel_image_id: str | None = None
    ramdisk_image_id: str | None = None
    root_device_name: str | None = None
    block_device_mapping: Json = None


class RegisteredImage(Value):
    """The image service's id of an image whose data is being imported, and ``ami``, ``aki`` or ``ari``."""

    image_id: str
    container_format: str
