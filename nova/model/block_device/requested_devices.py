"""Block devices of a create request: converted from either list of the body to local disks and volumes, with every
check that needs neither flavor nor image. The conductor adds the image's mappings
(:mod:`nova.model.block_device.block_devices`)."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

import msgspec

from nova import errors
from nova.model.base import JsonValue
from nova.model.block_device.block_device_entries import (
    SWAP,
    BadEntryError,
    DeviceEntry,
    new_entry,
    old_entry,
    with_root,
)
from nova.model.block_device.block_devices import USUAL_ROOT
from nova.model.server.servers import LocalDisk
from nova.model.volumes import VOLUME, BlockDevice

DeviceList = Sequence[Mapping[str, JsonValue]]


class DeviceTerms(NamedTuple):
    """Limits for the devices of a request. ``image``: imageRef; ``servers``: the most servers requested;
    ``multiattach``: the microversion supports volumes with several servers; ``most_local``: the most local disks,
    unlimited if negative."""

    image: str
    servers: int
    multiattach: bool
    most_local: int


class RequestedDevices(NamedTuple):
    """Requested devices, as fields of :class:`nova.model.server.servers.NewServer`."""

    disks: tuple[LocalDisk, ...] = ()
    volumes: tuple[BlockDevice, ...] = ()
    unmapped: tuple[str, ...] = ()


def devices_of(old: DeviceList, new: DeviceList, terms: DeviceTerms) -> RequestedDevices:
    """Return the devices requested by ``block_device_mapping`` (old) or ``block_device_mapping_v2`` (new). The image's
    own disk is checked and left out. Raises server.BadBlockDevice, server.BadBlockDevices or
    server.TooManyLocalDisks."""
    entries = with_root(_read(old, old_entry), USUAL_ROOT, bool(terms.image)) if old else _read(new, new_entry)
    _check_swap(entries)
    if terms.servers > 1:
        _check_shared(entries)
    if terms.image and new:
        _check_names(entries)
    _check_image(entries, terms.image)
    _check_boot(entries, own_disk=bool(terms.image and (old or not any(map(_asks, entries)))))
    disks = tuple(entry.disk for entry in entries if entry.disk)
    if 0 <= terms.most_local < len(disks):
        raise errors.server.TooManyLocalDisks(count=len(disks), most=terms.most_local)
    return RequestedDevices(disks, tuple(_shared(entry.volume, terms) for entry in entries if entry.volume),
                   tuple(entry.name for entry in entries if entry.name and not entry.volume and not entry.image_id))


def _read(devices: DeviceList, reader: Callable[[Mapping[str, JsonValue]], DeviceEntry]) -> list[DeviceEntry]:
    found = []
    for number, device in enumerate(devices):
        try:
            found.append(reader(device))
        except BadEntryError as bad:
            raise errors.server.BadBlockDevice(number=number, reason=str(bad)) from None
    return found


def _asks(entry: DeviceEntry) -> bool:
    return bool(entry.disk or entry.volume or entry.image_id)


def _shared(volume: BlockDevice, terms: DeviceTerms) -> BlockDevice:
    return msgspec.structs.replace(volume, multiattach=terms.multiattach and volume.source == VOLUME)


# -- checks over all entries


def _check_swap(entries: Iterable[DeviceEntry]) -> None:
    swaps = [number for number, entry in enumerate(entries) if entry.disk and entry.disk.kind == SWAP]
    if len(swaps) > 1:
        raise errors.server.BadBlockDevice(number=swaps[1], reason="more than one swap disk")


def _check_shared(entries: Iterable[DeviceEntry]) -> None:
    for number, entry in enumerate(entries):
        if entry.volume and entry.volume.source == VOLUME:
            raise errors.server.BadBlockDevice(number=number, reason="a volume cannot be attached to several new "
                                               "servers: create one server at a time")


def _check_names(entries: Iterable[DeviceEntry]) -> None:
    for number, entry in enumerate(entries):
        if entry.volume and entry.name == USUAL_ROOT:
            raise errors.server.BadBlockDevice(number=number, reason=f"device_name {USUAL_ROOT} conflicts with the "
                                               "root device of imageRef; omit one of them")


def _check_image(entries: Iterable[DeviceEntry], image: str) -> None:
    for number, entry in enumerate(entries):
        if not entry.image_id:
            continue
        if not image:
            raise errors.server.BadBlockDevice(number=number, reason="Mapping image to local is not supported without "
                                               "imageRef.")
        if entry.image_id != str(uuid.UUID(image)):
            raise errors.server.BadBlockDevice(number=number, reason=f"the boot disk uses image "
                                               f"{entry.image_id}, but imageRef is {image}")


def _check_boot(entries: Iterable[DeviceEntry], own_disk: bool) -> None:
    """Check the boot sequence. ``own_disk``: the image's disk is the boot disk unless a device has boot_index 0."""
    found = sorted((entry.boot_index, number) for number, entry in enumerate(entries) if entry.boot_index is not None)
    if own_disk and (not found or found[0][0] > 0):
        found.insert(0, (0, -1))
    if not found:
        raise errors.server.BadBlockDevices(reason="Boot sequence for the instance and image/block device mapping "
                                            "combination is not valid: no device has boot_index 0")
    for expected, (index, number) in enumerate(found):
        if index != expected:
            reason = f"boot_index {index} is used twice" if index < expected else f"missing boot_index {expected}"
            raise errors.server.BadBlockDevice(number=number, reason="Boot sequence for the instance and image/block "
                                               f"device mapping combination is not valid: {reason}")
