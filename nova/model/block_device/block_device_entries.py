"""Parser for one entry of a block device mapping: the old form (``block_device_mapping``, which named volumes and
snapshots), or the new one (``block_device_mapping_v2``, whose entries have source and destination).

Requests and images use both forms. Source: the Compute API's reference (Create Server; block device mapping guide).
"""

from __future__ import annotations

import contextlib
import re
import uuid
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

import msgspec

from nova.model.base import JsonValue
from nova.model.image.image_properties import BUSES
from nova.model.server.servers import LocalDisk
from nova.model.volumes import BLANK, IMAGE, LOCAL, SNAPSHOT, VOLUME, BlockDevice

SWAP, EPHEMERAL = "swap", "ephemeral"
SOURCES, DESTINATIONS = (VOLUME, IMAGE, SNAPSHOT, BLANK), (LOCAL, VOLUME)
TYPES = ("disk", "cdrom", "floppy", "fs", "lun")
#: Default destination of a source: the only possible one, or the one that clients expect.
USUAL = {VOLUME: VOLUME, SNAPSHOT: VOLUME, IMAGE: LOCAL, BLANK: LOCAL}

_EPHEMERAL = re.compile(r"ephemeral[0-9]+")
_INTEGER = re.compile(r"-?[0-9]{1,18}")
_YES = ("true", "t", "1", "on", "yes", "y")


class BadEntryError(ValueError):
    """The reason why an entry is not a valid block device."""


class DeviceEntry(NamedTuple):
    """A parsed entry: a local disk, a volume, or (``image_id``) the image's own disk, which the server boots from. An
    entry without any of them removes the device. ``name``: the device's name without ``/dev/``; empty if it has
    none."""

    name: str = ""
    disk: LocalDisk | None = None
    volume: BlockDevice | None = None
    image_id: str = ""

    @property
    def boot_index(self) -> int | None:
        """Position in the boot sequence; None if the device is not bootable."""
        if self.image_id:
            return 0
        return self.volume.boot_index if self.volume else None


def bare(name: str | None) -> str:
    """Return a device's name without ``/dev/``."""
    return (name or "").removeprefix("/dev/")


def is_true(value: object) -> bool:
    """Return the truth value of a JSON flag, which may be text."""
    return value is True or (isinstance(value, str) and value.strip().lower() in _YES)


def of_image(device: Mapping[str, JsonValue]) -> Mapping[str, JsonValue]:
    """Return an image's entry of the new form in the form of requests: images store the id under the source's name."""
    own = device.get(f"{device.get('source_type')}_id")
    return {**device, "uuid": own} if own else device


# -- the new form


class _Asked(NamedTuple):
    """Values of an entry that the rules check."""

    source: str | None
    target: str | None
    id: str
    size: int | None
    boot_index: int | None
    device_type: str | None
    bus: str | None
    volume_type: str | None


class _Rule(NamedTuple):
    reason: str
    broken: Callable[[_Asked], bool]


#: Checked in this order: a later rule relies on the earlier ones.
_RULES = (
    _Rule("source_type is missing", lambda one: one.source is None),
    _Rule(f"source_type {{source}} must be one of {', '.join(SOURCES)}", lambda one: one.source not in SOURCES),
    _Rule("destination_type {target} must be local or volume", lambda one: one.target not in DESTINATIONS),
    _Rule("a blank device cannot have a uuid", lambda one: one.source == BLANK and bool(one.id)),
    _Rule("source {source} requires a uuid", lambda one: one.source != BLANK and not one.id),
    _Rule("uuid {id} is not a valid UUID", lambda one: bool(one.id) and _canonical(one.id) is None),
    _Rule("source {source} cannot be a local disk: its destination_type must be volume",
          lambda one: one.target == LOCAL and one.source in (VOLUME, SNAPSHOT)),
    _Rule("Mapping image to local is only supported for the boot disk (boot_index 0).",
          lambda one: one.target == LOCAL and one.source == IMAGE and one.boot_index != 0),
    _Rule("a blank local disk cannot be bootable",
          lambda one: one.target == LOCAL and one.source == BLANK and one.boot_index is not None),
    _Rule("a local disk cannot have a volume_type", lambda one: one.target == LOCAL and bool(one.volume_type)),
    _Rule("an existing volume already has a volume_type", lambda one: one.source == VOLUME and bool(one.volume_type)),
    _Rule("a volume of source {source} requires a volume_size of at least 1",
          lambda one: one.target == VOLUME and one.source in (IMAGE, BLANK) and not one.size),
    _Rule("volume_size {size} must not be negative", lambda one: one.size is not None and one.size < 0),
    _Rule(f"disk_bus {{bus}} must be one of {', '.join(BUSES)}",
          lambda one: one.bus is not None and one.bus not in BUSES),
    _Rule(f"device_type {{device_type}} must be one of {', '.join(TYPES)}",
          lambda one: one.device_type is not None and one.device_type not in TYPES),
)


def new_entry(device: Mapping[str, JsonValue]) -> DeviceEntry:
    """Parse an entry of the new form. Raises BadEntryError."""
    name = bare(_text(device, "device_name"))
    if is_true(device.get("no_device")):
        return DeviceEntry(name)
    asked = _asked(device)
    for reason, broken in _RULES:
        if broken(asked):
            raise BadEntryError(reason.format(**asked._asdict()))
    if asked.target == LOCAL:
        return (DeviceEntry(name, image_id=_canonical(asked.id) or "") if asked.source == IMAGE
                else DeviceEntry(name, disk=_local(device, asked)))
    return DeviceEntry(name, volume=_volume(name, device, asked))


def _asked(device: Mapping[str, JsonValue]) -> _Asked:
    source, boot_index = _text(device, "source_type"), _number(device, "boot_index")
    return _Asked(
        source, _text(device, "destination_type") or USUAL.get(source or ""), _text(device, "uuid") or "",
        _number(device, "volume_size"), boot_index if boot_index is not None and boot_index >= 0 else None,
        _text(device, "device_type") or None, _text(device, "disk_bus") or None, _text(device, "volume_type") or None)


def _local(device: Mapping[str, JsonValue], asked: _Asked) -> LocalDisk:
    form = _text(device, "guest_format") or None
    if form == SWAP:
        return LocalDisk(kind=SWAP, size=asked.size or None)
    return LocalDisk(kind=EPHEMERAL, size=asked.size or None, format=form)


def _volume(name: str, device: Mapping[str, JsonValue], asked: _Asked) -> BlockDevice:
    own, is_volume = _canonical(asked.id) or "", asked.source == VOLUME
    return BlockDevice(
        source=asked.source or "", source_id="" if is_volume else own, volume_id=own if is_volume else "",
        size_gb=None if is_volume else asked.size or None, volume_type=asked.volume_type, boot_index=asked.boot_index,
        device_name=f"/dev/{name}" if name else None, device_type=asked.device_type, bus=asked.bus,
        tag=_text(device, "tag") or None, delete_on_termination=is_true(device.get("delete_on_termination")))


# -- the old form


def old_entry(device: Mapping[str, JsonValue]) -> DeviceEntry:
    """Parse an entry of the old form. Raises BadEntryError. The old form has no boot order: :func:`with_root` adds
    it."""
    name, virtual = bare(_text(device, "device_name")), _text(device, "virtual_name") or ""
    if is_true(device.get("no_device")):
        return DeviceEntry(name)
    size = _number(device, "volume_size") or None
    if virtual == SWAP:
        return DeviceEntry(name, disk=LocalDisk(kind=SWAP, size=size))
    if _EPHEMERAL.fullmatch(virtual):
        return DeviceEntry(name, disk=LocalDisk(kind=EPHEMERAL, size=size))
    source = SNAPSHOT if device.get("snapshot_id") else VOLUME
    if not device.get(f"{source}_id"):
        raise BadEntryError("volume_id or snapshot_id is required")
    return new_entry({"source_type": source, "destination_type": VOLUME, "uuid": device.get(f"{source}_id"),
                      **{key: device[key] for key in ("device_name", "volume_size", "delete_on_termination")
                         if key in device}})


def with_root(entries: Iterable[DeviceEntry], root: str, image: bool) -> list[DeviceEntry]:
    """Return entries of the old form with the boot device marked: the volume whose device is named ``root``, else the
    image if there is one, else the first volume."""
    found = list(entries)
    volumes = [index for index, entry in enumerate(found) if entry.volume]
    named = [index for index in volumes if found[index].name == root]
    for index in named[:1] or ([] if image else volumes[:1]):
        volume = found[index].volume
        if volume is not None:
            found[index] = found[index]._replace(volume=msgspec.structs.replace(volume, boot_index=0))
    return found


# -- values; those of an image may have any type


def _text(device: Mapping[str, JsonValue], key: str) -> str | None:
    value = device.get(key)
    if value is not None and not isinstance(value, str):
        raise BadEntryError(f"{key} must be a string")
    return value


def _number(device: Mapping[str, JsonValue], key: str) -> int | None:
    value = device.get(key)
    if value is None or value == "":
        return None
    if isinstance(value, str) and _INTEGER.fullmatch(value):
        return int(value)
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    raise BadEntryError(f"{key} must be an integer")


def _canonical(text: str) -> str | None:
    """Return the UUID in its canonical form; None if the text is not a valid UUID."""
    with contextlib.suppress(ValueError):
        return str(uuid.UUID(text))
    return None
