"""A new server's disks: what its request and its image say together.

An image names disks by three properties: ``block_device_mapping`` (of the new form where ``bdm_v2`` is true; so
has an image that was made of a server on volumes), ``mappings`` (which device the swap, the ephemeral disk and the
root are) and ``root_device_name``. Facts: the Compute API's reference and guide (block device mapping).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from nova import errors
from nova.model.base import Json
from nova.model.block_device.block_device_entries import (
    EPHEMERAL,
    SWAP,
    BadEntryError,
    DeviceEntry,
    bare,
    is_true,
    new_entry,
    of_image,
    old_entry,
    with_root,
)
from nova.model.flavor.flavors import Flavor
from nova.model.server.servers import LocalDisk
from nova.model.volumes import IMAGE, BlockDevice, root_of

Properties = Mapping[str, str]

USUAL_ROOT = "vda"
BLOCK_DEVICES, VIRTUAL = "block_device_mapping", "mappings"
_ROOTS = ("root", "ami")  # what mappings call it


class MergedDisks(NamedTuple):
    """``local`` empty: as the flavor has them. The volume that the server boots from, if any, is the first."""

    local: tuple[LocalDisk, ...]
    volumes: tuple[BlockDevice, ...]


def merged(disks: tuple[LocalDisk, ...], volumes: tuple[BlockDevice, ...], properties: Properties, flavor: Flavor,
           unmapped: Iterable[str] = ()) -> MergedDisks:
    """The disks of a request (those of :class:`nova.model.server.servers.NewServer`) with those of its image, whose
    ``properties`` these are: imageRef's, or else those of the image that the boot volume is made of. (A volume that is
    there already remembers its image's properties, and what they map are no disks of this server.) Where both name a
    device alike, the request's counts.

    server.BadImageDevice: the image's mapping cannot be read. server.BadBlockDevices: what comes of both has no boot
    sequence, or names a volume as the image's own disk is named.
    """
    hidden = {*unmapped} - {""}
    theirs = [entry for entry in image_entries(properties) if entry.name not in hidden]
    has_root = any(entry.volume and entry.boot_index == 0 for entry in theirs)
    mine = tuple(one for one in volumes if not (has_root and one.source == IMAGE and one.boot_index == 0))
    taken = {bare(one.device_name) for one in mine} - {""}
    theirs = [entry for entry in theirs if entry.name not in taken]
    together = (*mine, *(entry.volume for entry in theirs if entry.volume))
    _check_boot(together)
    if root_of(together) is None:
        _check_names(mine, root_name(properties))
    return MergedDisks(_local(disks, theirs, flavor), tuple(sorted(together, key=lambda one: one.boot_index != 0)))


def count_local(disks: Sequence[LocalDisk], volumes: tuple[BlockDevice, ...], flavor: Flavor) -> int:
    """How many disks of its host a server with these has, which ``max_local_block_devices`` bounds."""
    return len(disks or _usual(flavor)) + (root_of(volumes) is None)


def root_name(properties: Properties) -> str:
    """What an image calls the disk it boots from, without ``/dev/``."""
    named = bare(_value(properties, "root_device_name"))
    mapped = [bare(str(item.get("device") or "")) for name in _ROOTS for item in _items(properties, VIRTUAL)
              if item.get("virtual") == name]
    return named or next(filter(None, mapped), USUAL_ROOT)


def image_entries(properties: Properties) -> list[DeviceEntry]:
    """The disks that an image asks for beside its own; empty: it asks for none. ``mappings`` give way to
    ``block_device_mapping`` of the same device. server.BadImageDevice."""
    new = is_true(_value(properties, "bdm_v2"))
    found = []
    for number, item in enumerate(_items(properties, BLOCK_DEVICES)):
        try:
            found.append(new_entry(of_image(item)) if new else old_entry(item))
        except BadEntryError as bad:
            raise errors.server.BadImageDevice(property=BLOCK_DEVICES, number=number, reason=str(bad)) from None
    if not new:
        found = with_root(found, root_name(properties), image=True)
    taken = {entry.name for entry in found} - {""}
    return [*found, *(entry for entry in _virtual(properties) if entry.name not in taken)]


def _virtual(properties: Properties) -> Iterable[DeviceEntry]:
    """Of ``mappings``. Their sizes are the flavor's."""
    for item in _items(properties, VIRTUAL):
        virtual = item.get("virtual")
        if isinstance(virtual, str) and virtual.startswith((SWAP, EPHEMERAL)):
            yield DeviceEntry(bare(str(item.get("device") or "")),
                        disk=LocalDisk(kind=SWAP if virtual == SWAP else EPHEMERAL))


# -- together


def _local(disks: tuple[LocalDisk, ...], theirs: Iterable[DeviceEntry], flavor: Flavor) -> tuple[LocalDisk, ...]:
    """The request's; of kinds that it has none of, the image's; of kinds that neither has, the flavor's."""
    usual = {disk.kind: disk for disk in _usual(flavor)}
    named = [entry.disk for entry in theirs if entry.disk and (entry.disk.size or entry.disk.kind in usual)]
    if not disks and not named:
        return ()
    sized = [disk for disk in named if disk.size]
    once = {disk.kind: disk for disk in reversed(named)}  # without a size it is all that the flavor has
    found = list(disks)
    for offered in (sized, [once[kind] for kind in usual if kind in once], usual.values()):
        known = {disk.kind for disk in found}
        found += [disk for disk in offered if disk.kind not in known]
    return tuple(found)


def _usual(flavor: Flavor) -> tuple[LocalDisk, ...]:
    """Those that a flavor has by itself."""
    sizes = {EPHEMERAL: flavor.ephemeral_gb, SWAP: flavor.swap_mb}
    return tuple(LocalDisk(kind=kind) for kind, size in sizes.items() if size)


def _check_boot(volumes: Iterable[BlockDevice]) -> None:
    """Without a volume of boot_index 0 it is the image's own disk that is booted from first."""
    found = sorted(one.boot_index for one in volumes if one.boot_index is not None)
    if 0 not in found:
        found.insert(0, 0)
    if found != list(range(len(found))):
        raise errors.server.BadBlockDevices(reason="Boot sequence for the instance and image/block device mapping "
                                            f"combination is not valid: boot_index {', '.join(map(str, found))}")


def _check_names(volumes: Iterable[BlockDevice], root: str) -> None:
    if any(bare(one.device_name) == root for one in volumes):
        raise errors.server.BadBlockDevices(reason=f"a volume cannot be {root}: so is the image's own disk named")


# -- an image's properties, which are text


def _value(properties: Properties, name: str) -> str | None:
    return properties.get(f"img_{name}", properties.get(name))


def _items(properties: Properties, name: str) -> list[Mapping[str, Json]]:
    text = _value(properties, name)
    if not text:
        return []
    try:
        items = json.loads(text)
    except (ValueError, RecursionError):
        items = None
    if not isinstance(items, list):
        raise errors.server.BadImageDevice(property=name, number=0, reason="it is no JSON list of objects")
    for number, item in enumerate(items):
        if not isinstance(item, dict):
            raise errors.server.BadImageDevice(property=name, number=number, reason="it is no object")
    return items
