"""Bundles: images that a client cut in parts, encrypted, and described in a manifest, as EC2's image tools do."""

from __future__ import annotations

from nova.model.base import Json, Value

MACHINE, KERNEL, RAMDISK = "ami", "aki", "ari"  # Glance's names of what an image can be
#: What a manifest says in place of a kernel's or a RAM disk's id when its image is one itself.
ITSELF = "true"


class BundleMapping(Value):
    """What a guest finds under a device's name, for example ``ami`` and ``sda1``."""

    virtual: str
    device: str


class BundleFacts(Value):
    """What a manifest says to whoever registers it. ``kernel_id`` and ``ramdisk_id`` are EC2's (``aki-...``); None
    where it says none, or that its image is one itself. ``container_format``: ``ami``, ``aki`` or ``ari``. ``size``:
    of the image, in bytes; None: it is not said."""

    name: str | None
    architecture: str
    container_format: str
    kernel_id: str | None = None
    ramdisk_id: str | None = None
    mappings: tuple[BundleMapping, ...] = ()
    parts: int = 0
    size: int | None = None


class RegisterBundle(Value):
    """An image is to be made of a bundle. ``location``: the manifest's ``bucket/path``, in a bucket of the project.

    ``kernel_image_id`` and ``ramdisk_image_id`` are the image service's. ``block_device_mapping`` is JSON and kept as
    it is. ``architecture`` None: as the manifest says. ``name`` None: the location is the name.
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
    """The image service's id of an image that is on its way, and ``ami``, ``aki`` or ``ari``."""

    image_id: str
    container_format: str
