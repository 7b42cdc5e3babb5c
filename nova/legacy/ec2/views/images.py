"""Views of images, for DescribeImages."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterable, Mapping

from nova import errors
from nova.legacy.ec2.request import Ec2Request
from nova.legacy.ec2.views.instances import EBS, INSTANCE_STORE, architecture
from nova.model.base import JsonValue
from nova.model.block_device.block_device_entries import bare, is_true
from nova.model.block_device.block_devices import BLOCK_DEVICES, VIRTUAL, root_name
from nova.model.ec2 import MACHINE, image_prefix
from nova.model.image.images import Image

#: Glance's status -> EC2's state.
STATES = {"active": "available", "queued": "pending", "saving": "pending", "uploading": "pending",
          "importing": "pending", "killed": "failed", "deactivated": "deregistered", "deleted": "deregistered"}
TYPES = {"ami": "machine", "aki": "kernel", "ari": "ramdisk"}
FAILED = "failed"


def prefix(image: Image) -> str:
    """Return the prefix of the image's EC2 id."""
    return image_prefix(image.container_format)


def state(image: Image) -> str:
    """Return the image's EC2 state. A bundle's ``image_state`` takes precedence: pending until its data exist."""
    said = image.properties.get("image_state")
    if said is None or said == "available":
        return STATES.get(image.status, image.status)
    return FAILED if said.startswith(FAILED) else "pending"


def all_of(req: Ec2Request, images: Iterable[Image]) -> list[dict[str, object]]:
    """Return the views of the images, with one lookup of ids for each resource type."""
    found = list(images)
    kinds: dict[str, list[str]] = {"ami": [], "aki": [], "ari": []}
    snapshots, volumes = [], []
    for image in found:
        kinds[prefix(image)].append(image.id)
        kinds["aki"].append(image.kernel_id or "")
        kinds["ari"].append(image.ramdisk_id or "")
        for one in devices(image):
            snapshots.append(str(one.get("snapshot_id") or ""))
            volumes.append(str(one.get("volume_id") or ""))
    ids = {kind: req.ids(kind, wanted) for kind, wanted in kinds.items()}
    storage = {**req.ids("snap", snapshots), **req.ids("vol", volumes)}
    return [_image(image, ids, storage) for image in found]


def _image(image: Image, ids: Mapping[str, Mapping[str, str]], storage: Mapping[str, str]) -> dict[str, object]:
    kind, said = prefix(image), image.properties
    root = f"/dev/{_root(said)}"
    mapping = [_device(one, storage) for one in devices(image)]
    is_ebs = any(bare(str(one["deviceName"] or "")) == bare(root) and "ebs" in one for one in mapping) or any(
        one.get("boot_index") in (0, "0") for one in devices(image))
    return {
        "imageId": ids[kind][image.id], "kernelId": ids["aki"].get(image.kernel_id or ""),
        "ramdiskId": ids["ari"].get(image.ramdisk_id or ""), "imageOwnerId": image.owner,
        "imageLocation": said.get("image_location") or f"None ({image.name})", "name": image.name,
        "imageState": state(image), "description": said.get("description"), "imageType": TYPES[kind],
        "isPublic": image.visibility == "public", "architecture": architecture(said), "rootDeviceName": root,
        "rootDeviceType": EBS if is_ebs else INSTANCE_STORE, "blockDeviceMapping": mapping,
        "creationDate": image.created_at, "virtualizationType": "hvm" if kind == MACHINE else None}


def _root(said: Mapping[str, str]) -> str:
    """Return the root device name. An invalid mapping is ignored: it must not break the list of all images."""
    with contextlib.suppress(errors.Invalid):
        return root_name(said)
    return root_name({name: text for name, text in said.items() if name != VIRTUAL})


def devices(image: Image) -> list[Mapping[str, JsonValue]]:
    """Return the image's block device mapping; empty if it is invalid, which only the image's owner can repair."""
    return [one for name in (BLOCK_DEVICES, VIRTUAL) for one in _listed(image.properties.get(name))]


def _listed(text: str | None) -> list[Mapping[str, JsonValue]]:
    try:
        found = json.loads(text) if text else []
    except (ValueError, RecursionError):
        return []
    return [one for one in found if isinstance(one, dict)] if isinstance(found, list) else []


def _device(one: Mapping[str, JsonValue], storage: Mapping[str, str]) -> dict[str, object]:
    """Return the view of a device of any form, also of ``mappings``, which uses ``virtual`` and ``device``."""
    virtual = one.get("virtual_name") or one.get("virtual")
    if one.get("source_type") == "blank" and one.get("destination_type") == "local":
        virtual = "swap" if one.get("guest_format") == "swap" else "ephemeral0"
    found: dict[str, object] = {"deviceName": one.get("device_name") or one.get("device")}
    if virtual:
        return found | {"virtualName": str(virtual)}
    if is_true(one.get("no_device")):
        return found | {"noDevice": "true"}
    kept = storage.get(str(one.get("snapshot_id") or one.get("volume_id") or ""))
    size = one.get("volume_size")
    return found | {"ebs": {"snapshotId": kept, "volumeSize": size if isinstance(size, int) else None,
                            "deleteOnTermination": is_true(one.get("delete_on_termination"))}}
