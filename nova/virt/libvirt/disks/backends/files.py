"""Disks in files, raw or qcow2."""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Iterator
from pathlib import Path

from nova import errors
from nova.privileged import filesystems
from nova.privileged.qemu_img import ImageFile, Overlay, QemuImg
from nova.privileged.runner import CommandRunner
from nova.virt.libvirt.disks.backends.interface import Format, Space
from nova.virt.libvirt.disks.folders import Folder
from nova.virt.libvirt.disks.plan import Base
from nova.virt.libvirt.disks.records import DiskRecord
from nova.virt.libvirt.settings import LibvirtSettings

PART = ".part"


class FileDisks:
    """The common part of both formats: files in the guest's folder."""

    shared = False  # a move detects whether ``instances_path`` is shared

    def __init__(self, settings: LibvirtSettings, tool: QemuImg, runner: CommandRunner) -> None:
        self._settings, self._tool, self._runner = settings, tool, runner

    def exists(self, folder: Folder, disk: DiskRecord) -> bool:
        return folder.file(disk.name).exists()

    def own(self, folder: Folder, disk: DiskRecord) -> None:
        """Do nothing: no other host sees the disk, or the folder names its owner."""

    def grow(self, folder: Folder, disk: DiskRecord) -> None:
        self._tool.resize(ImageFile(str(folder.file(disk.name)), disk.format, disk.backing or ""), disk.size_bytes)

    def source(self, folder: Folder, disk: DiskRecord) -> str:
        return str(folder.file(disk.name))

    def remove(self, folder: Folder, disk: DiskRecord) -> None:
        for name in (disk.name, f"{disk.name}{PART}"):
            folder.file(name).unlink(missing_ok=True)

    def space(self) -> Space:
        found = os.statvfs(self._settings.instances_path)
        return Space(found.f_blocks * found.f_frsize, found.f_bavail * found.f_frsize)

    def _take_space(self, part: Path, disk: DiskRecord) -> None:
        """Allocate the disk's space now, if so configured; the file's content does not change."""
        if not self._settings.preallocate or disk.device != "disk":
            return
        keep_size = ["-n"] if disk.format != "raw" else []
        done = self._runner.run(["fallocate", *keep_size, "-l", str(disk.size_bytes), str(part)], ok=(0, 1))
        if done.code and os.strerror(errno.EOPNOTSUPP) not in done.stderr:
            if os.strerror(errno.ENOSPC) in done.stderr:
                raise errors.host.DiskFull(what="a disk", host=os.uname().nodename)
            raise errors.host.CommandFailed(command="fallocate", where=os.uname().nodename,
                                            reason=done.stderr.strip()[:200])


class RawFiles(FileDisks):
    """Raw files: full copies of their image."""

    def create_root(self, folder: Folder, disk: DiskRecord, base: Base | None) -> None:
        with whole(folder.file(disk.name)) as part:
            if base is None:
                self._tool.create(str(part), disk.format, disk.size_bytes)
            else:
                made = ImageFile(str(part), disk.format)
                self._tool.convert(ImageFile(base.path, base.format), made)
                if disk.size_bytes > base.size_bytes:
                    self._tool.resize(made, disk.size_bytes)
            self._take_space(part, disk)

    def create_empty(self, folder: Folder, disk: DiskRecord, wanted: Format) -> None:
        with whole(folder.file(disk.name)) as part:
            format_file(self._runner, part, disk.size_bytes, wanted)
            self._take_space(part, disk)


class Qcow2Files(RawFiles):
    """qcow2 files: a root disk is an overlay of its image in the host's cache, if its record names one."""

    def create_root(self, folder: Folder, disk: DiskRecord, base: Base | None) -> None:
        if base is None or not disk.backing:
            super().create_root(folder, disk, base)
            return
        with whole(folder.file(disk.name)) as part:
            self._tool.create_overlay(Overlay(str(part), base.path, base.format, disk.size_bytes))
            self._take_space(part, disk)

    def create_empty(self, folder: Folder, disk: DiskRecord, wanted: Format) -> None:
        """Format a raw file and convert it (both are sparse except for the file system's tables)."""
        with whole(folder.file(disk.name)) as part, scratch(folder, f"{disk.name}.raw{PART}") as raw:
            format_file(self._runner, raw, disk.size_bytes, wanted)
            self._tool.convert(ImageFile(str(raw), "raw"), ImageFile(str(part), disk.format))
            self._take_space(part, disk)


def format_file(runner: CommandRunner, path: Path, size_bytes: int, wanted: Format) -> None:
    """Create a sparse file with a file system."""
    with open(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o600), "wb") as target:
        target.truncate(size_bytes)
    filesystems.make(runner, wanted.name, wanted.label, str(path))


@contextlib.contextmanager
def scratch(folder: Folder, name: str) -> Iterator[Path]:
    """Yield the path of a temporary file, which is removed at the end of the block."""
    path = folder.file(name)
    path.unlink(missing_ok=True)
    try:
        yield path
    finally:
        path.unlink(missing_ok=True)


@contextlib.contextmanager
def whole(path: Path) -> Iterator[Path]:
    """Yield a temporary path for ``path``; rename it at the end of the block, or remove it if the block fails."""
    part = path.with_name(f"{path.name}{PART}")
    part.unlink(missing_ok=True)
    try:
        yield part
        part.chmod(0o600)
        os.replace(part, path)
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise errors.host.DiskFull(what="a disk", host=os.uname().nodename) from error
        raise
    finally:
        part.unlink(missing_ok=True)
