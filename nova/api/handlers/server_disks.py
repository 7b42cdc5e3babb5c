"""Block devices of a create, as far as a host's own disks go: the image's, ephemeral ones and swap.

What needs volumes is refused, clearly, until this cloud has a volume service.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from nova import errors
from nova.model.base import Json
from nova.model.servers import LocalDisk
from nova.web.formats import BOOLEANS

EPHEMERAL, SWAP = "ephemeral", "swap"


def disks_of(old: Sequence[Mapping[str, object]], new: Sequence[Mapping[str, object]], image: str) -> tuple[LocalDisk,
             ...]:
    """The local disks that ``block_device_mapping`` (old) or ``block_device_mapping_v2`` (new) ask for.

    The image's own disk is checked and left out. server.NeedsVolumes, server.BadBlockDevice.
    """
    for number, device in enumerate(old):
        _check_old(number, device)
    disks = [_disk(number, device, image) for number, device in enumerate(new) if not _is_none(device)]
    if new and not image:
        raise errors.server.BadBlockDevice(number=0,
                                           reason="without imageRef, the boot device would have to be a volume")
    if sum(disk is not None and disk.kind == SWAP for disk in disks) > 1:
        raise errors.server.BadBlockDevice(number=0, reason="more than one swap disk")
    return tuple(disk for disk in disks if disk is not None)


def _is_none(device: Mapping[str, object]) -> bool:
    """``no_device``: the image's mapping of this device is not wanted."""
    value = device.get("no_device")
    return value is True or (isinstance(value, str) and BOOLEANS.get(value, False))


def _check_old(number: int, device: Mapping[str, object]) -> None:
    if _is_none(device):
        return
    for key in ("volume_id", "snapshot_id", "volume_size"):
        if key in device:
            raise errors.server.NeedsVolumes(number=number, what=key)
    raise errors.server.BadBlockDevice(number=number, reason="it names no volume and no snapshot")


def _disk(number: int, device: Mapping[str, Json], image: str) -> LocalDisk | None:
    """None for the image's own disk."""
    source, target = device.get("source_type"), device.get("destination_type")
    if source is None:
        raise errors.server.BadBlockDevice(number=number, reason="source_type is missing")
    if source in ("volume", "snapshot") or target == "volume" or "volume_id" in device or "snapshot_id" in device:
        raise errors.server.NeedsVolumes(number=number, what=f"source {source}, destination {target or 'volume'}")
    if source == "image":
        _check_image(number, device, image)
        return None
    if device.get("uuid"):
        raise errors.server.BadBlockDevice(number=number, reason="a blank device has no uuid")
    if device.get("boot_index") not in (None, -1):
        raise errors.server.BadBlockDevice(number=number, reason="a blank device can not be booted from")
    if device.get("guest_format") == SWAP:
        return LocalDisk(kind=SWAP, size=device.get("volume_size"))
    return LocalDisk(kind=EPHEMERAL, size=device.get("volume_size"), format=device.get("guest_format"))


def _check_image(number: int, device: Mapping[str, object], image: str) -> None:
    if device.get("boot_index") != 0:
        raise errors.server.BadBlockDevice(number=number, reason="Mapping image to local is not supported but for the "
                                           "boot disk (boot_index 0).")
    named = device.get("uuid") or device.get("image_id")
    if named != image:
        raise errors.server.BadBlockDevice(number=number,
                                           reason=f"the boot disk is made of image {named}, and imageRef is {image}")
