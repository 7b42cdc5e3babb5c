"""Fetch a guest's files: from another host's exports, or from a source copy that this host sees.

Each file gets its name when it is complete; existing files are not fetched again. The folder records the source's
probe, so files that were fetched for an earlier move are never used for this one.
"""

from __future__ import annotations

import contextlib
import os
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, Protocol

import msgspec

from nova import errors
from nova.model.guest.orders import BuildOrder, GuestOnSource
from nova.privileged import disk_exports, guest_files
from nova.privileged.qemu_img import ImageFile, QemuImg, ToolLimits
from nova.privileged.runner import CommandRunner
from nova.virt import image_files
from nova.virt.interface import LocalImages
from nova.virt.libvirt.disks import header
from nova.virt.libvirt.disks.backends.files import whole
from nova.virt.libvirt.disks.folders import Folder
from nova.virt.libvirt.disks.records import DiskRecord
from nova.virt.libvirt.moves.source_info import BASE, SourceInfo
from nova.virt.libvirt.settings.moves import MoveSettings, is_host


class Origin(Protocol):
    def get(self, name: str, target: Path) -> None:
        """Copy the file ``name`` (:func:`~nova.virt.libvirt.moves.source_info.files_of`) unchanged and sparse."""


@dataclass(frozen=True)
class FromFolder:
    """A folder that this host sees. Its records name the backing files."""

    folder: Folder
    runner: CommandRunner

    def get(self, name: str, target: Path) -> None:
        source = self.folder.file(name)
        if name.startswith(BASE):
            (source,) = (self.folder.base_file(disk) for disk in self.folder.disks()
                         if disk.name == name.removeprefix(BASE))
        guest_files.copy(self.runner, str(source), str(target))


@dataclass(frozen=True)
class FromHost:
    """The exports of another host."""

    source: GuestOnSource
    source_files: SourceInfo
    tool: QemuImg

    def get(self, name: str, target: Path) -> None:
        if not self.source.port:
            raise errors.move.BadOffer(reason="this host cannot read its disks")
        if not is_host(self.source.address) or not 0 < self.source.port < 65536:
            raise errors.move.BadOffer(reason=f"its address is {self.source.address[:100]!r} port "
                                       f"{self.source.port}")
        source = disk_exports.ExportSource(self.source.address, self.source.port, self.source_files.export(name))
        with disk_exports.reading(source, target.parent) as export:
            self.tool.fetch(export, str(target), _sectors(self.source_files.length(name)))


class OnlyImage(NamedTuple):
    """An image of the image cache. A source may name any image of a disk, but its guest may only see its own."""

    images: LocalImages
    image_id: str

    def path(self, image_id: str) -> str:
        """Return the image's path. Raises KeyError for any other image."""
        if image_id != self.image_id:
            raise KeyError(image_id)
        return self.images.path(image_id)


def only(images: LocalImages | None, build: BuildOrder) -> LocalImages | None:
    """Return access to only the guest's own image, if there is a cache."""
    return OnlyImage(images, build.image.id) if images is not None and build.image is not None else None


class WantedFile(NamedTuple):
    """A disk on the source, and its new size (0: unchanged)."""

    disk: DiskRecord
    size_bytes: int = 0


class FileTransfer:
    """Copies files from sources. ``runner`` copies local files, with the timeout of the settings."""

    def __init__(self, settings: MoveSettings, memory_mb: int, runner: CommandRunner) -> None:
        self._settings, self._runner = settings, runner
        self._tool = QemuImg(ToolLimits(cpu_s=settings.copy_timeout_s, memory_mb=memory_mb), settings.copy_timeout_s)

    def from_folder(self, folder: Folder) -> Origin:
        """Return an origin that copies from a folder that this host sees: a source copy's, or one on shared storage."""
        return FromFolder(folder, self._runner)

    def from_host(self, source: GuestOnSource, source_files: SourceInfo) -> Origin:
        """Return an origin that reads the source's exports over the network, with TLS if so configured. Does not
        connect yet."""
        return FromHost(source, source_files, self._tool)

    def open(self, folder: Folder, probe: str, uuid: str) -> None:
        """Create the folder, for copies of the files that ``probe`` identifies. Raises move.OtherFiles."""
        kept = folder.copy_of()
        if kept is not None and kept != probe:
            folder.remove()  # copies of an earlier, incomplete move
        elif kept is None and folder.disks():
            raise errors.move.OtherFiles(uuid=uuid)
        folder.make()
        folder.keep_copy_of(probe)

    def bring(self, origin: Origin, folder: Folder, source_files: SourceInfo, name: str) -> None:
        """Copy a file unchanged."""
        if not folder.file(name).exists():
            with whole(folder.file(name)) as part:
                self._get(origin, source_files, name, part)

    def bring_disk(self, origin: Origin, folder: Folder, source_files: SourceInfo, wanted: WantedFile,
                             images: LocalImages | None) -> DiskRecord:
        """Copy a disk, rebase it on this host's base and grow it; return its new record. Raises move.DiskShrinks,
        move.BadOffer."""
        disk = wanted.disk
        here = self.over_base_here(origin, folder, source_files, disk, images)
        if folder.file(disk.name).exists():
            return _sized(here, header.size(folder.file(disk.name), disk.format))
        with whole(folder.file(disk.name)) as part:
            self._get(origin, source_files, disk.name, part)
            size = header.size(part, disk.format)
            if wanted.size_bytes and wanted.size_bytes < size:
                raise errors.move.DiskShrinks(kind=disk.kind, has_bytes=size, wanted_bytes=wanted.size_bytes)
            if disk.format == "qcow2":
                if header.refers(part) != bool(here.backing):
                    raise errors.move.BadOffer(reason=f"{disk.name} has another backing file than announced")
                if here.backing:
                    self._tool.rebase(str(part), here.backing, here.backing_format or "raw")
            if wanted.size_bytes > size:
                self._tool.resize(ImageFile(str(part), disk.format, here.backing or ""), wanted.size_bytes)
        return _sized(here, max(size, wanted.size_bytes))

    def over_base_here(self, origin: Origin, folder: Folder, source_files: SourceInfo, disk: DiskRecord,
                             images: LocalImages | None) -> DiskRecord:
        """Return the record of a disk with its backing file on this host: the cached image, else a copy in its
        folder."""
        if not disk.backing:
            return disk
        path = _cached(images, source_files.image_id(disk.name))
        if path is not None and image_files.virtual_bytes(path) == source_files.base_size(disk.name):
            return _over(disk, path, image_files.format_of(path))
        name = f"{disk.name}.base"
        if not folder.file(name).exists():
            with whole(folder.file(name)) as part:
                self._get(origin, source_files, BASE + disk.name, part)
                if disk.backing_format == "qcow2" and header.refers(part):
                    raise errors.move.BadOffer(reason=f"the base of {disk.name} has a backing file itself")
        return _over(disk, str(folder.file(name)), disk.backing_format or "raw")

    def _get(self, origin: Origin, source_files: SourceInfo, name: str, part: Path) -> None:
        length = source_files.length(name)
        free = shutil.disk_usage(part.parent).free
        if free < source_files.used(name):
            raise errors.host.DiskFull(what="a disk", host=os.uname().nodename)
        origin.get(name, part)
        if not length <= part.stat().st_size <= _sectors(length):
            raise errors.move.BadOffer(reason=f"{name} has {part.stat().st_size} bytes instead of {length}")
        os.truncate(part, length)


def _cached(images: LocalImages | None, image_id: str) -> str | None:
    with contextlib.suppress(KeyError):
        return images.path(image_id) if images is not None and image_id else None
    return None


def _sectors(length: int) -> int:
    """Round up to whole sectors, because NBD has only those."""
    return -(-length // 512) * 512


def _over(disk: DiskRecord, base: str, base_format: str) -> DiskRecord:
    return msgspec.structs.replace(disk, backing=base, backing_format=base_format)


def _sized(disk: DiskRecord, size_bytes: int) -> DiskRecord:
    return msgspec.structs.replace(disk, size_bytes=size_bytes)
