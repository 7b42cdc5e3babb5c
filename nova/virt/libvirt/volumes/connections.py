"""Volumes that this host has connected for its guests: recorded with each guest before the connect, and disconnected by
these records."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, cast

import msgspec

from nova import errors, failures
from nova.model.volumes import VolumeDisk
from nova.virt.libvirt.disks.folders import Folder, Folders
from nova.virt.libvirt.disks.records import VolumeRecord
from nova.virt.libvirt.settings import LibvirtSettings
from nova.virt.libvirt.volumes import brick, local, luks, nfs, rbd
from nova.virt.libvirt.volumes.common import ConnectionData, Use, VolumeKind, VolumeTools, plain

LOG = logging.getLogger(__name__)

#: A connection's ``driver_volume_type`` -> the module that handles it.
KINDS: Mapping[str, VolumeKind] = cast(Mapping[str, VolumeKind], {
    "rbd": rbd, "nfs": nfs, "local": local, **dict.fromkeys(brick.KINDS, brick)})


class WantedVolume(NamedTuple):
    """A volume to connect. ``data``, ``passphrase``: from the order, and never stored."""

    record: VolumeRecord
    data: ConnectionData | None = None
    passphrase: str = ""

    def __repr__(self) -> str:
        return f"WantedVolume({self.record.volume_id})"


@dataclass(frozen=True, kw_only=True)
class VolumeConnections:
    settings: LibvirtSettings
    folders: Folders
    tools: VolumeTools
    _locks: dict[str, threading.Lock] = field(default_factory=dict)  # by shared mount or volume

    def connect(self, server_uuid: str, volumes: Sequence[VolumeDisk],
                targets: Mapping[str, str] | None = None) -> None:
        """Connect the volumes. ``targets``: the disk names in the guest's definition so far, by volume."""
        folder = self.folders.of(server_uuid)
        folder.make()
        known = {one.volume_id: one for one in folder.volumes()}
        wanted = [self._wanted(server_uuid, one, known, targets or {}) for one in volumes]
        begun: list[VolumeRecord] = []

        def give_up(error: Exception) -> None:
            for record in begun:
                if record.volume_id not in known:
                    self._give_up(folder, record, forget=isinstance(error, errors.host.VolumeIdentity))
        with failures.reported_to(give_up, on=Exception):
            for one in wanted:
                begun.append(one.record)
                self._connect(folder, known.get(one.record.volume_id), one)

    def disconnect(self, server_uuid: str, keep: frozenset[str] = frozenset()) -> None:
        """Disconnect all volumes of the guest, also of its source copy, which uses none. The guest is gone, so a failed
        disconnect is forced. Raises HostRefused if that fails too; the caller may try again."""
        for folder in (self.folders.of(server_uuid), self.folders.source_copy(server_uuid)):
            for record in folder.volumes():
                if record.volume_id not in keep:
                    self._let_go(folder, record, force=True)

    def extend(self, server_uuid: str, volume_id: str) -> None:
        """Rescan a volume that has grown. Raises HostRefused."""
        for record in self.folders.of(server_uuid).volumes():
            if record.volume_id == volume_id:
                with self._shared(record):
                    brick.extend(record, self.tools)

    def release(self, server_uuid: str, volume_id: str) -> None:
        """Disconnect one volume of a guest that stays; does nothing if it is not connected. Raises HostRefused if it
        could not be flushed or removed; it is then still connected."""
        folder = self.folders.of(server_uuid)
        for record in folder.volumes():
            if record.volume_id == volume_id:
                self._let_go(folder, record)

    def replace(self, server_uuid: str, volume_id: str, successor_id: str) -> None:
        """Rename the successor to the volume's id and disconnect the old volume. Does nothing if that is done."""
        folder = self.folders.of(server_uuid)
        known = {one.volume_id: one for one in folder.volumes()}
        if (new := known.pop(successor_id, None)) is None:
            return
        old = known.pop(volume_id, None)
        if old is not None and old.kind in KINDS and (old.mount, old.path) != (new.mount, new.path):
            with self._shared(old):
                used = _needed(old, (*known.values(), new, *self._of_others(folder)))
                KINDS[old.kind].disconnect(old, Use(used, force=True), self.tools)
        target = old.target if old is not None else new.target
        folder.keep_volumes((*known.values(), msgspec.structs.replace(new, volume_id=volume_id, target=target)))

    # --- internal

    def _wanted(self, server_uuid: str, disk: VolumeDisk, known: Mapping[str, VolumeRecord],
                targets: Mapping[str, str]) -> WantedVolume:
        """Return the volume to connect. Raises host.VolumeKind, host.VolumeData; host.VolumeNotConnected."""
        volume_id, connection = disk.device.volume_id, disk.connection
        old = known.get(volume_id)
        if connection is None:
            if old is None:
                raise errors.host.VolumeNotConnected(volume=volume_id, uuid=server_uuid)
            return WantedVolume(old)
        kind = KINDS.get(connection.kind)
        if kind is None:
            raise errors.host.VolumeKind(volume=volume_id, kind=connection.kind, known=", ".join(sorted(KINDS)))
        begun, data = plain(disk, connection)
        record = _as_known(kind.record(begun, data, self.settings), old)
        target = targets.get(volume_id, record.target)
        return WantedVolume(msgspec.structs.replace(record, target=target), data, connection.passphrase)

    def _connect(self, folder: Folder, old: VolumeRecord | None, wanted: WantedVolume) -> None:
        """Record the volume, then connect it: if this process dies between, a later disconnect finds the record."""
        record = wanted.record
        if old is not None and (old.mount != record.mount or _words(old) != _words(record)):
            self._let_go(folder, old, force=True)
        with self._shared(record):
            others = tuple(one for one in folder.volumes() if one.volume_id != record.volume_id)
            folder.keep_volumes((*others, record))
            luks.unlock(record, wanted.passphrase, self.tools.hypervisor)
            connected = KINDS[record.kind].connect(record, self.tools, wanted.data)
            brick.check_alone(connected, self._of_other_volumes(connected))
            if connected != record:
                folder.keep_volumes((*others, connected))

    def _of_other_volumes(self, record: VolumeRecord) -> Mapping[str, VolumeRecord]:
        """Return all volumes that guests have connected here; {} for a volume without a device, which cannot
        collide."""
        if record.device is None:
            return {}
        return {one.volume_id: one for folder in self.folders.all() for one in folder.volumes()
                if one.volume_id != record.volume_id}

    def _give_up(self, folder: Folder, record: VolumeRecord, forget: bool = False) -> None:
        """Disconnect a volume whose connect failed; only log an error, because the caller raises that of the connect.
        ``forget``: the last volume's device may be another volume's, so it must not be removed from the host."""
        with failures.best_effort(LOG, "volume %s could not be connected, and parts of it may remain: %s",
                record.volume_id):
            if forget and record == folder.volumes()[-1]:
                LOG.error("the device found in place of volume %s stays on this host: check its multipath devices and "
                          "sessions, and remove the stale ones", record.volume_id)
                return folder.keep_volumes(folder.volumes()[:-1])
            self._let_go(folder, record, force=True)

    def _let_go(self, folder: Folder, record: VolumeRecord, force: bool = False) -> None:
        kind = KINDS.get(record.kind)
        with self._shared(record):
            rest = tuple(one for one in folder.volumes() if one.volume_id != record.volume_id)
            others = (*rest, *self._of_others(folder))
            if kind is not None:
                kind.disconnect(record, Use(_needed(record, others), force), self.tools)
            else:
                LOG.error("volume %s has connection type %s, unknown to this release; parts of it may remain",
                          record.volume_id, record.kind)
            if not any(one.volume_id == record.volume_id for one in others):
                luks.lock(record, self.tools.hypervisor)
            folder.keep_volumes(rest)

    def _of_others(self, folder: Folder) -> tuple[VolumeRecord, ...]:
        """Return what all other guests have connected here."""
        return tuple(one for other in self.folders.all() if other.path != folder.path for one in other.volumes())

    def _shared(self, record: VolumeRecord) -> threading.Lock:
        """Return the lock to hold while the users of a shared resource are checked and it is created or removed."""
        return self._locks.setdefault(_shares(record), threading.Lock())


def _shares(record: VolumeRecord) -> str:
    """Return the resource that guests of a host may share: a mount with many volumes, or a volume of many guests."""
    return record.mount or record.volume_id


def _as_known(record: VolumeRecord, old: VolumeRecord | None) -> VolumeRecord:
    """Return the record with the data of its earlier one: its target, and, for the same device, its path and
    identity."""
    if old is None:
        return record
    if record.device is not None and _words(old) == _words(record):
        record = msgspec.structs.replace(record, device=old.device, path=old.path)
    return msgspec.structs.replace(record, target=old.target)


def _words(record: VolumeRecord) -> Mapping[str, object]:
    """Return a device's connection data; {} if the volume is not a device."""
    return record.device.words if record.device is not None else {}


def _needed(record: VolumeRecord, others: Iterable[VolumeRecord]) -> bool:
    return any(_shares(one) == _shares(record) for one in others)
