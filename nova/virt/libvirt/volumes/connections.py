"""What this host has connected for its guests: noted beside each guest before it is made, let go by these notes."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import cast

import msgspec

from nova import errors
from nova.model.volumes import VolumeDisk
from nova.virt.libvirt.disks.folders import Folder, Folders, VolumeRecord
from nova.virt.libvirt.settings import LibvirtSettings
from nova.virt.libvirt.volumes import local, nfs, rbd
from nova.virt.libvirt.volumes.common import VolumeKind, VolumeTools, plain

LOG = logging.getLogger(__name__)

#: A connection's ``driver_volume_type`` -> who knows how to reach it.
KINDS: Mapping[str, VolumeKind] = cast(Mapping[str, VolumeKind], {"rbd": rbd, "nfs": nfs, "local": local})


@dataclass(frozen=True, kw_only=True)
class VolumeConnections:
    settings: LibvirtSettings
    folders: Folders
    tools: VolumeTools
    _locks: dict[str, threading.Lock] = field(default_factory=dict)  # of what guests share

    def connect(self, server_uuid: str, volumes: Sequence[VolumeDisk],
                targets: Mapping[str, str] | None = None) -> None:
        """``targets``: the names that the guest's definition has for them already, by volume."""
        folder = self.folders.of(server_uuid)
        folder.make()
        known = {one.volume_id: one for one in folder.volumes()}
        wanted = [self._record(server_uuid, one, known, targets or {}) for one in volumes]
        begun: list[VolumeRecord] = []
        try:
            for record in wanted:
                begun.append(record)
                self._connect(folder, known.get(record.volume_id), record)
        except Exception:
            for record in begun:
                if record.volume_id not in known:
                    self._let_go(folder, record)
            raise

    def disconnect(self, server_uuid: str, keep: frozenset[str] = frozenset()) -> None:
        """Also of a guest that left: what stays of it here uses no volume."""
        for folder in (self.folders.of(server_uuid), self.folders.source_copy(server_uuid)):
            for record in folder.volumes():
                if record.volume_id not in keep:
                    self._let_go(folder, record)

    def let_go(self, server_uuid: str, volume_id: str) -> None:
        """Of one alone. Nothing when it is not connected."""
        folder = self.folders.of(server_uuid)
        for record in folder.volumes():
            if record.volume_id == volume_id:
                self._let_go(folder, record)

    def replace(self, server_uuid: str, volume_id: str, successor_id: str) -> None:
        """The successor goes by the volume's id from now on; what that was is let go. Nothing when it is done."""
        folder = self.folders.of(server_uuid)
        known = {one.volume_id: one for one in folder.volumes()}
        if (new := known.pop(successor_id, None)) is None:
            return
        old = known.pop(volume_id, None)
        if old is not None and old.kind in KINDS and (old.mount, old.path) != (new.mount, new.path):
            with self._shared(old):
                used = self._is_used(folder, old, (*known.values(), new))
                KINDS[old.kind].disconnect(old, used, self.tools)
        target = old.target if old is not None else new.target
        folder.keep_volumes((*known.values(), msgspec.structs.replace(new, volume_id=volume_id, target=target)))

    # --- inside

    def _record(self, server_uuid: str, disk: VolumeDisk, known: Mapping[str, VolumeRecord],
                targets: Mapping[str, str]) -> VolumeRecord:
        """host.VolumeKind, host.VolumeData; host.VolumeNotConnected."""
        volume_id, connection = disk.device.volume_id, disk.connection
        old = known.get(volume_id)
        if connection is None:
            if old is None:
                raise errors.host.VolumeNotConnected(volume=volume_id, uuid=server_uuid)
            return old
        kind = KINDS.get(connection.kind)
        if kind is None:
            raise errors.host.VolumeKind(volume=volume_id, kind=connection.kind, known=", ".join(sorted(KINDS)))
        record = kind.record(*plain(disk, connection), self.settings)
        target = targets.get(volume_id, old.target if old is not None else "")
        return msgspec.structs.replace(record, target=target)

    def _connect(self, folder: Folder, old: VolumeRecord | None, record: VolumeRecord) -> None:
        if old is not None and old.mount != record.mount:
            self._let_go(folder, old)
        with self._shared(record):
            others = (one for one in folder.volumes() if one.volume_id != record.volume_id)
            folder.keep_volumes((*others, record))
            KINDS[record.kind].connect(record, self.tools)

    def _let_go(self, folder: Folder, record: VolumeRecord) -> None:
        kind = KINDS.get(record.kind)
        with self._shared(record):
            rest = tuple(one for one in folder.volumes() if one.volume_id != record.volume_id)
            if kind is not None:
                kind.disconnect(record, self._is_used(folder, record, rest), self.tools)
            else:
                LOG.error("volume %s was connected by %s, which this release does not know: something may be left",
                          record.volume_id, record.kind)
            folder.keep_volumes(rest)

    def _is_used(self, folder: Folder, record: VolumeRecord, rest: Iterable[VolumeRecord]) -> bool:
        """Whether another volume of any guest here needs what this one's connection shares."""
        if not record.mount:
            return False
        others = (one for other in self.folders.all() if other.path != folder.path for one in other.volumes())
        return any(one.mount == record.mount for one in (*rest, *others))

    def _shared(self, record: VolumeRecord) -> threading.Lock:
        """Held while it is found out who uses what is shared, and that is made or removed."""
        return self._locks.setdefault(record.mount or record.volume_id, threading.Lock())
