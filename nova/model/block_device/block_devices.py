"""Disks of a new server, merged from its request and its image.

An image names disks by three properties. ``block_device_mapping`` has the new form if ``bdm_v2`` is true; images made
of servers on volumes have it. ``mappings`` says which devices are the swap, the ephemeral and the root disk. The third
is ``root_device_name``. Source: the Compute API's reference and guide (block device mapping).
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from nova import errors
from nova.model.base import JsonValue
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
_ROOTS = ("root", "ami")  # names of the root device in mappings


class MergedDisks(NamedTuple):
    """Merged disks. ``local`` empty: the flavor's. The volume that the server boots from, if any, is the first."""

    local: tuple[LocalDisk, ...]
    volumes: tuple[BlockDevice, ...]


def merged(disks: tuple[LocalDisk, ...], volumes: tuple[BlockDevice, ...], properties: Properties, flavor: Flavor,
           unmapped: Iterable[str] = ()) -> MergedDisks:
    """Merge the disks of a request (of :class:`nova.model.server.servers.NewServer`) with the disks of its image.
    ``properties`` are those of imageRef, or else of the image that the boot volume is created from. If both name the
    same device, the request takes precedence. (An existing volume also keeps its image's properties, but their mappings
    are not disks of this server.)

    Raises server.BadImageDevice if the image's mapping cannot be read. Raises server.BadBlockDevices if the merged
    disks have no valid boot sequence, or if a volume has the name of the image's own disk.
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
    """Return the number of local disks of a server with these disks, which ``max_local_block_devices`` limits."""
    return len(disks or _usual(flavor)) + (root_of(volumes) is None)


def root_name(properties: Properties) -> str:
    """Return an image's name for the disk that it boots from, without ``/dev/``."""
    named = bare(_value(properties, "root_device_name"))
    mapped = [bare(str(item.get("device") or "")) for name in _ROOTS for item in _items(properties, VIRTUAL)
              if item.get("virtual") == name]
    return named or next(filter(None, mapped), USUAL_ROOT)


def image_entries(properties: Properties) -> list[DeviceEntry]:
    """Return the disks that an image requests in addition to its own; empty if it requests none.
    ``block_device_mapping`` takes precedence over ``mappings`` of the same device. Raises server.BadImageDevice."""
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
    """Yield the disks of ``mappings``. The flavor defines their sizes."""
    for item in _items(properties, VIRTUAL):
        virtual = item.get("virtual")
        if isinstance(virtual, str) and virtual.startswith((SWAP, EPHEMERAL)):
            yield DeviceEntry(bare(str(item.get("device") or "")),
                        disk=LocalDisk(kind=SWAP if virtual == SWAP else EPHEMERAL))


# -- merging


def _local(disks: tuple[LocalDisk, ...], theirs: Iterable[DeviceEntry], flavor: Flavor) -> tuple[LocalDisk, ...]:
    """Return the request's local disks. The image's disks are added for kinds that the request lacks, then the flavor's
    disks for kinds that both lack."""
    usual = {disk.kind: disk for disk in _usual(flavor)}
    named = [entry.disk for entry in theirs if entry.disk and (entry.disk.size or entry.disk.kind in usual)]
    if not disks and not named:
        return ()
    sized = [disk for disk in named if disk.size]
    once = {disk.kind: disk for disk in reversed(named)}  # without a size, one disk gets the flavor's whole size
    found = list(disks)
    for offered in (sized, [once[kind] for kind in usual if kind in once], usual.values()):
        known = {disk.kind for disk in found}
        found += [disk for disk in offered if disk.kind not in known]
    return tuple(found)


def _usual(flavor: Flavor) -> tuple[LocalDisk, ...]:
    """Return the disks that a flavor defines."""
    sizes = {EPHEMERAL: flavor.ephemeral_gb, SWAP: flavor.swap_mb}
    return tuple(LocalDisk(kind=kind) for kind, size in sizes.items() if size)


def _check_boot(volumes: Iterable[BlockDevice]) -> None:
    """Check the boot sequence. Without a volume of boot_index 0, the image's own disk is the first boot device."""
    found = sorted(one.boot_index for one in volumes if one.boot_index is not None)
    if 0 not in found:
        found.insert(0, 0)
    if found != list(range(len(found))):
        raise errors.server.BadBlockDevices(reason="Boot sequence for the instance and image/block device mapping "
                                            f"combination is not valid: boot_index {', '.join(map(str, found))}")


def _check_names(volumes: Iterable[BlockDevice], root: str) -> None:
    if any(bare(one.device_name) == root for one in volumes):
        raise errors.server.BadBlockDevices(reason=f"a volume cannot be named {root}, like the image's own disk")


# -- an image's properties, which are text


def _value(properties: Properties, name: str) -> str | None:
    return properties.get(f"img_{name}", properties.get(name))


def _items(properties: Properties, name: str) -> list[Mapping[str, JsonValue]]:
    text = _value(properties, name)
    if not text:
        return []
    items = None
    with contextlib.suppress(ValueError, RecursionError):
        items = json.loads(text)
    if not isinstance(items, list):
        raise errors.server.BadImageDevice(property=name, number=0, reason="it is not a JSON list of objects")
    for number, item in enumerate(items):
        if not isinstance(item, dict):
            raise errors.server.BadImageDevice(property=name, number=number, reason="it is not a JSON object")
    return items
