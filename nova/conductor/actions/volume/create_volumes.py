"""The volumes of a create: looked up as the requesting user, and created or reserved just before the servers are
written.

A refusal releases the volumes that were taken. If a conductor dies, they are released by a cleanup row that it wrote
before (``volume_cleanups``).
"""

from __future__ import annotations

import uuid as uuids
from collections.abc import Callable, Mapping, Sequence
from string import ascii_lowercase
from typing import NamedTuple, TypeVar

import msgspec

from nova import errors, failures
from nova.conductor import volume_cleanups
from nova.conductor.actions.checks import usable_image
from nova.conductor.engine.deps import ConductorSettings, Deps
from nova.conductor.steps import volume_keys
from nova.conductor.steps.volumes import DOUBT_S, RETRY_S
from nova.db import volumes
from nova.db.sql.engine import Connection
from nova.db.volumes import ATTACHMENT, RESERVATION, VOLUME, Cleanup
from nova.model.image.images import Image
from nova.model.volumes import (
    AVAILABLE,
    BLANK,
    IMAGE,
    IN_USE,
    SNAPSHOT,
    BlockDevice,
    NewVolume,
    Volume,
    root_of,
)
from nova.model.volumes import VOLUME as EXISTING

T = TypeVar("T")

GIB = 1024**3
LIFTED = ("image_id", "image_name", "size", "checksum", "container_format", "disk_format", "min_ram", "min_disk")


class FoundDevice(NamedTuple):
    """A block device of a request. ``volume``: its existing volume."""

    device: BlockDevice
    image: Image | None = None
    volume: Volume | None = None


class VolumesOfCreate:
    def __init__(self, deps: Deps) -> None:
        self.deps = deps

    def look_up(self, asked_for: Sequence[BlockDevice]) -> tuple[FoundDevice, ...]:
        """Look up the requested devices.

        Raises volume.NotFound, SnapshotNotFound, NotAvailable, NeedsMultiattach, NoBootable; server.BadImage.
        """
        return tuple(self._looked_up(asked) for asked in asked_for)

    def _looked_up(self, asked: BlockDevice) -> FoundDevice:
        match asked.source:
            case "volume":
                volume = self._volume(asked.source_id or asked.volume_id)
                self._check(volume, asked)
                if volume.encrypted:
                    volume_keys.check(self.deps, volume.id)
                return FoundDevice(msgspec.structs.replace(
                    asked, source_id=volume.id, volume_id=volume.id, size_gb=volume.size_gb,
                    multiattach=volume.multiattach, encrypted=volume.encrypted), _image_of(volume), volume)
            case "snapshot":
                snapshot = self._as_invalid(lambda: self.deps.volumes.get_snapshot(asked.source_id, as_user=True))
                origin = self._volume(snapshot.volume_id) if asked.boot_index == 0 else None
                size = asked.size_gb or snapshot.size_gb
                about = _image_of(origin) if origin else None
                return FoundDevice(msgspec.structs.replace(asked, size_gb=size, made=True), about)
            case "image":
                image = usable_image(self.deps, asked.source_id)
                if (asked.size_gb or 0) < image.min_disk_gb:
                    raise errors.volume.TooSmall(image_id=image.id, size=asked.size_gb or 0, needs=image.min_disk_gb)
                return FoundDevice(msgspec.structs.replace(asked, made=True), msgspec.structs.replace(image, id=""))
        return FoundDevice(msgspec.structs.replace(asked, made=True))

    def _volume(self, volume_id: str) -> Volume:
        return self._as_invalid(lambda: self.deps.volumes.get(volume_id, as_user=True))

    @staticmethod
    def _as_invalid(ask: Callable[[], T]) -> T:
        """Return the result of ``ask``; in a create, a missing object is an error in the request body, not in the
        URL."""
        with failures.replaced(errors.NotFound, lambda error: errors.volume.BadDevice(reason=error.message)):
            return ask()

    @staticmethod
    def _check(volume: Volume, asked: BlockDevice) -> None:
        if volume.multiattach and not asked.multiattach:
            raise errors.volume.NeedsMultiattach(volume=volume.id)
        if volume.status != AVAILABLE and not (volume.multiattach and volume.status == IN_USE):
            raise errors.volume.NotAvailable(volume=volume.id, status=volume.status)
        if asked.boot_index == 0 and not volume.bootable:
            raise errors.volume.NoBootable(volume=volume.id)

    # -- creation and reservation

    def take(self, devices: Sequence[BlockDevice], server_uuids: Sequence[str], zone: str | None
             ) -> Mapping[str, tuple[BlockDevice, ...]]:
        """Reserve existing volumes, and create the others in the zone, for each server.

        Raises the errors of the volume service; all volumes that were taken before are then released.
        """
        done: dict[str, tuple[BlockDevice, ...]] = dict.fromkeys(server_uuids, ())
        if not devices:
            return done
        doubts = self._doubts(devices, server_uuids)
        self.deps.cell.transact(lambda tx: volumes.add_cleanups(tx, doubts, DOUBT_S))
        with failures.on_failure(lambda: self.give_back(done), on=errors.NovaError):
            for uuid in server_uuids:
                for device in devices:
                    done[uuid] = (*done[uuid], self._take(device, uuid, zone))
        return done

    @staticmethod
    def _doubts(devices: Sequence[BlockDevice], server_uuids: Sequence[str]) -> list[Cleanup]:
        return [Cleanup(RESERVATION, one.volume_id, uuid) for uuid in server_uuids for one in devices
                if one.volume_id]

    def _take(self, device: BlockDevice, uuid: str, zone: str | None) -> BlockDevice:
        device = msgspec.structs.replace(device, id=str(uuids.uuid4()))
        if device.source == EXISTING:
            made = self.deps.volumes.reserve(device.volume_id, uuid, as_user=True)
            return msgspec.structs.replace(device, attachment_id=made.id)
        new = NewVolume(
            size_gb=device.size_gb or 1, name=f"{uuid}-blank-vol" if device.source == BLANK else "",
            snapshot_id=device.source_id if device.source == SNAPSHOT else None,
            image_id=device.source_id if device.source == IMAGE else None, volume_type=device.volume_type,
            availability_zone=None if self.deps.settings.cross_az_attach else zone)
        return msgspec.structs.replace(device, volume_id=self.deps.volumes.create(new, as_user=True).id)

    def give_back(self, taken: Mapping[str, tuple[BlockDevice, ...]]) -> None:
        """Release the volumes; a volume that cannot be released now is released later."""
        left = [one for uuid, devices in taken.items() for device in devices for one in _left(uuid, device)]
        self.deps.cell.transact(lambda tx: volumes.add_cleanups(tx, left, RETRY_S))
        volume_cleanups.run_cleanups(self.deps, left)


def _left(uuid: str, device: BlockDevice) -> list[Cleanup]:
    if device.made:
        return [Cleanup(VOLUME, device.volume_id, uuid)] if device.volume_id else []
    return [Cleanup(ATTACHMENT, device.attachment_id, uuid)]


def written(tx: Connection, taken: Mapping[str, tuple[BlockDevice, ...]]) -> None:
    """Record the volumes as the servers' and drop their cleanups, in the transaction that writes the servers."""
    for uuid, devices in taken.items():
        for device in devices:
            volumes.hold(tx, uuid, device)
        volumes.drop_cleanups(tx, [Cleanup(RESERVATION, one.volume_id, uuid) for one in devices])


def zone_of(found: Sequence[FoundDevice], asked: str | None, settings: ConductorSettings) -> str | None:
    """Return a server's zone: the requested one, or that of its existing volumes if they must be in the same zone and
    theirs is not the default one. Raises volume.ZonesDiffer, volume.OtherZone."""
    zones = {one.volume.availability_zone: one.volume for one in found if one.volume is not None}
    if settings.cross_az_attach or not zones:
        return asked
    if len(zones) > 1:
        raise errors.volume.ZonesDiffer(zones=", ".join(sorted(zones)))
    [(zone, volume)] = zones.items()
    if asked not in (None, zone):
        raise errors.volume.OtherZone(volume=volume.id, zone=zone, server_zone=asked)
    return asked if asked or zone == settings.default_availability_zone else zone


def named(devices: tuple[BlockDevice, ...], root: str, local: int) -> tuple[BlockDevice, ...]:
    """Return the devices with the names that the guest presumably gives them: the boot device first, then its
    ``local`` disks, and the other volumes in their order."""
    letters = iter(ascii_lowercase[local + (root_of(devices) is not None):])
    return tuple(msgspec.structs.replace(one, device_name=root if one.boot_index == 0 else root[:-1] + next(letters))
                 for one in devices)


def _image_of(volume: Volume) -> Image:
    """Return the image that a volume was created from, as its metadata describes it, without the image's id and
    name."""
    said = volume.image_metadata
    return Image(id="", size_bytes=volume.size_gb * GIB, min_ram_mb=_number(said.get("min_ram")),
                 min_disk_gb=_number(said.get("min_disk")), disk_format="raw", container_format="bare",
                 properties={name: value for name, value in said.items() if name not in LIFTED})


def _number(text: str | None) -> int:
    return int(text) if text and text.isdigit() else 0
