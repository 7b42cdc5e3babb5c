"""Cold migration: guests that are off leave this host, or arrive (``nova.virt.interface.ColdMoves``)."""

from __future__ import annotations

import logging
import os
from dataclasses import dataclass

import msgspec

from nova import errors
from nova.model.guest.orders import GuestOnSource, MoveOrder
from nova.privileged import disk_exports
from nova.virt.interface import LocalImages
from nova.virt.libvirt.disks import plan
from nova.virt.libvirt.disks.folders import Folder, Folders
from nova.virt.libvirt.disks.maker import DiskMaker
from nova.virt.libvirt.disks.records import DiskRecord
from nova.virt.libvirt.disks.refusals import convert_tool_errors
from nova.virt.libvirt.disks.tpm import Tpms
from nova.virt.libvirt.hypervisor import OFF, LibvirtHypervisor
from nova.virt.libvirt.moves import source_info, tpm_transfer
from nova.virt.libvirt.moves.file_transfer import FileTransfer, Origin, WantedFile, only
from nova.virt.libvirt.moves.pooled import PooledDisks
from nova.virt.libvirt.moves.source_info import SourceInfo
from nova.virt.libvirt.settings import LibvirtSettings
from nova.virt.libvirt.vifs.interfaces import LibvirtInterfaces

LOG = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class LibvirtColdMoves:
    hypervisor: LibvirtHypervisor
    settings: LibvirtSettings
    folders: Folders
    disks: DiskMaker
    tpms: Tpms
    carrier: FileTransfer
    interfaces: LibvirtInterfaces
    pooled: PooledDisks

    def leave(self, server_uuid: str) -> GuestOnSource:
        folder, source_copy = self.folders.of(server_uuid), self.folders.source_copy(server_uuid)
        state = self.hypervisor.state(server_uuid)
        if self._has(source_copy) and state is not None:
            raise errors.move.NotForgotten(uuid=server_uuid)
        if not self._has(source_copy):
            if not folder.exists() or not folder.owned:
                raise errors.guest.NotDefined(uuid=server_uuid)
            if state not in OFF | {None}:
                raise errors.move.GuestRuns(uuid=server_uuid)
            if source_copy.exists():
                raise errors.move.NotForgotten(uuid=server_uuid)
            source_info.check_files(folder, server_uuid)
            self._keep_source(server_uuid, folder, source_copy)
        tpm_transfer.pack(self.tpms, server_uuid, source_copy)
        offer = source_info.offer_of(source_copy, self.settings.moves)
        disks, facts = source_info.describe(source_copy, offer.names)
        return GuestOnSource(address=offer.address, port=offer.port, probe=source_info.probe_of(source_copy),
                             disks=disks,
                             facts=facts)

    def fetch(self, order: MoveOrder, images: LocalImages | None) -> None:
        folder = self.folders.of(order.server_uuid)
        origin, source_files, probe = self._origin(order)
        with convert_tool_errors():
            self.carrier.open(folder, probe, order.server_uuid)
            folder.keep_order(order.build)
            disks = self._bring(order, folder, origin, source_files, images)
            folder.keep_disks(disks)
            self.disks.make(order.build, folder, disks, None)

    def restore_source(self, server_uuid: str) -> bool:
        folder, source_copy = self.folders.of(server_uuid), self.folders.source_copy(server_uuid)
        if not self._has(source_copy):
            return False
        disk_exports.withdraw(source_copy.path)
        self.hypervisor.power_off(server_uuid)  # the guest that fetch made on this same host
        self.hypervisor.undefine(server_uuid)
        with convert_tool_errors():
            self.pooled.take_back(source_copy, folder)
        folder.discard()
        tpm_transfer.drop(source_copy)
        source_info.drop_probe(source_copy)  # it identified the disks' former state
        os.replace(source_copy.path, folder.path)
        return True

    def forget(self, server_uuid: str) -> None:
        source_copy, folder = self.folders.source_copy(server_uuid), self.folders.of(server_uuid)
        if self._has(source_copy):
            disk_exports.withdraw(source_copy.path)
            with convert_tool_errors():
                self.pooled.forget(source_copy, folder)
            source_copy.remove()
        if not (folder.exists() and folder.owned):
            self.tpms.remove(server_uuid, source_copy)

    def kept_sources(self) -> frozenset[str]:
        return frozenset(self.folders.kept_sources())

    # --- internal

    def _has(self, source_copy: Folder) -> bool:
        """Return whether this host has the source copy: on shared storage, those of other hosts are visible too."""
        return source_copy.exists() and source_copy.owned

    def _keep_source(self, server_uuid: str, folder: Folder, source_copy: Folder) -> None:
        self.hypervisor.undefine(server_uuid)
        self.interfaces.unplug(server_uuid, None)
        source_info.drop_probe(folder)
        folder.keep_copy_of(None)
        with convert_tool_errors():
            self.pooled.keep(folder)
        os.replace(folder.path, source_copy.path)

    def _origin(self, order: MoveOrder) -> tuple[Origin, SourceInfo, str]:
        """Return the disks' origin, the source's data about them, and their probe."""
        source_copy, source, carrier = self.folders.source_copy(order.server_uuid), order.source, self.carrier
        if source is None:
            if not self._has(source_copy):
                raise errors.move.NothingAside(uuid=order.server_uuid)
            disks, facts = source_info.describe(source_copy, {})
            source_files = SourceInfo(GuestOnSource(disks=disks, facts=facts))
            return carrier.from_folder(source_copy), source_files, source_info.probe_of(source_copy)
        source_files = SourceInfo(source)
        if source_copy.exists() and source_info.sees(self.folders.root, source.probe):
            return carrier.from_folder(source_copy), source_files, source.probe
        return carrier.from_host(source, source_files), source_files, source.probe

    def _bring(self, order: MoveOrder, folder: Folder, origin: Origin, source_files: SourceInfo,
                     images: LocalImages | None) -> tuple[DiskRecord, ...]:
        """Fetch every disk that the guest keeps; return the records of all disks that it will have."""
        wanted, fresh = _wanted(plan.plan(order.build, self.settings, None), source_files.records)
        carrier, own = self.carrier, only(images, order.build)
        self.pooled.check(order.server_uuid, source_files.records)
        found = {one.disk.name: self.pooled.take(folder, one) if one.disk.pooled
                 else carrier.bring_disk(origin, folder, source_files, one, own) for one in wanted}
        self.pooled.make_way(folder, fresh)
        for extra in source_files.extras():
            carrier.bring(origin, folder, source_files, extra.name)
        tpm_transfer.unpack(self.tpms, order.server_uuid, folder)
        for disk in source_files.records:
            if disk.kind == "config":
                if not disk.pooled:
                    carrier.bring(origin, folder, source_files, disk.name)
                found[disk.name] = disk
        LOG.info("fetched the guest's disks", extra={"server": order.server_uuid})
        ranks = ("root", "ephemeral", "swap", "config")
        return tuple(sorted((*found.values(), *fresh), key=lambda disk: (ranks.index(disk.kind), disk.index)))


def _wanted(planned: tuple[DiskRecord, ...], had: tuple[DiskRecord, ...]) -> tuple[list[WantedFile], list[DiskRecord]]:
    """Return the disks to keep, and those to create: swap of another size, and new disks. Raises move.DiskShrinks."""
    there = {(disk.kind, disk.index): disk for disk in had}
    plans = {(disk.kind, disk.index): disk for disk in planned}
    wanted, fresh = [], []
    for key, disk in there.items():
        shall = plans.get(key)
        if disk.kind == "root":
            size = shall.size_bytes if shall is not None and disk.device != "cdrom" else 0
            if 0 < size < disk.size_bytes:
                raise errors.move.DiskShrinks(kind="root", has_bytes=disk.size_bytes, wanted_bytes=size)
            wanted.append(WantedFile(disk, size))
        elif disk.kind == "ephemeral":
            if shall is None:
                raise errors.move.DiskShrinks(kind="ephemeral", has_bytes=disk.size_bytes, wanted_bytes=0)
            wanted.append(WantedFile(disk, shall.size_bytes))
        elif disk.kind == "swap" and shall is not None and shall.size_bytes == disk.size_bytes:
            wanted.append(WantedFile(disk))
    names = {one.disk.name for one in wanted}
    for key, disk in plans.items():
        if disk.kind != "root" and disk.name not in names:
            fresh.append(msgspec.structs.replace(disk, bus=there[key].bus if key in there else disk.bus))
    return wanted, fresh
