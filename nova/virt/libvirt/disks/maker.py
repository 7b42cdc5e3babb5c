"""Makes what :mod:`plan` planned: each disk under another name first, and renamed when it is whole."""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

from nova import concurrency
from nova.model.orders import BuildOrder
from nova.privileged.qemu_img import DiskFull, Overlay, QemuImg
from nova.privileged.runner import CommandFailed, Runner
from nova.virt.libvirt.disks import filesystems
from nova.virt.libvirt.disks.plan import Base, wanted_disks
from nova.virt.libvirt.folders import DiskRecord, Folder
from nova.virt.libvirt.settings import Settings

PART = ".part"


class DiskMaker:
    """``runner`` runs the tools that make file systems."""

    def __init__(self, settings: Settings, tool: QemuImg, runner: Runner) -> None:
        self._settings, self._tool, self._runner = settings, tool, runner

    def make(self, order: BuildOrder, folder: Folder, disks: tuple[DiskRecord, ...], base: Base | None) -> None:
        """Every disk that is not there yet. HostRefused when there is no space."""
        for disk in disks:
            if not folder.file(disk.name).exists():
                self._make(order, folder, disk, base)

    def copy(self, source: str, folder: Folder, name: str) -> None:
        """A file of the cache that the guest needs at each start (kernel, ramdisk), so that the cache may lose it."""
        with _whole(folder.file(name)) as part:
            concurrency.run_in_thread(shutil.copyfile, source, part)

    def _make(self, order: BuildOrder, folder: Folder, disk: DiskRecord, base: Base | None) -> None:
        with _whole(folder.file(disk.name)) as part:
            if disk.kind == "root":
                self._make_root(part, disk, base)
            else:
                self._make_formatted(part, disk, self._filesystem(order, disk))
            if self._settings.preallocate and disk.device == "disk":
                self._take_space(part, disk)

    def _make_root(self, part: Path, disk: DiskRecord, base: Base | None) -> None:
        if base is None:
            self._tool.create(str(part), disk.format, disk.size_bytes)
        elif disk.backing:
            self._tool.create_overlay(Overlay(str(part), base.path, base.format, disk.size_bytes))
        else:
            self._tool.convert(base.path, base.format, str(part), disk.format)
            if disk.size_bytes > base.size_bytes:
                self._tool.resize(str(part), disk.format, disk.size_bytes)

    def _make_formatted(self, part: Path, disk: DiskRecord, filesystem: str) -> None:
        """Formatted as a raw file, then brought into its format (both are holes but for the file system's tables)."""
        if disk.format == "raw":
            self._format(part, disk, filesystem)
            return
        raw = part.with_name(f"{disk.name}.raw{PART}")
        raw.unlink(missing_ok=True)
        try:
            self._format(raw, disk, filesystem)
            self._tool.convert(str(raw), "raw", str(part), disk.format)
        finally:
            raw.unlink(missing_ok=True)

    def _format(self, path: Path, disk: DiskRecord, filesystem: str) -> None:
        with open(path, "xb") as target:
            path.chmod(0o600)
            target.truncate(disk.size_bytes)
        self._runner.run(filesystems.argv(filesystem, filesystems.label(disk.kind, disk.index), str(path)))

    def _filesystem(self, order: BuildOrder, disk: DiskRecord) -> str:
        asked = next((one.format for one in wanted_disks(order)
                      if (one.kind, one.index) == (disk.kind, disk.index)), None)
        os_type = order.image.properties.get("os_type") if order.image else None
        return filesystems.choose(disk.kind, asked, self._settings.ephemeral_format, os_type)

    def _take_space(self, part: Path, disk: DiskRecord) -> None:
        """From the file system, now: what lies in the file stays as it is."""
        keep_size = ["-n"] if disk.format != "raw" else []
        done = self._runner.run(["fallocate", *keep_size, "-l", str(disk.size_bytes), str(part)], ok=(0, 1))
        if done.code and os.strerror(errno.EOPNOTSUPP) not in done.stderr:
            if os.strerror(errno.ENOSPC) in done.stderr:
                raise DiskFull(what="a disk", host=os.uname().nodename)
            raise CommandFailed(command="fallocate", where=os.uname().nodename, reason=done.stderr.strip()[:200])


@contextlib.contextmanager
def _whole(path: Path) -> Iterator[Path]:
    """A name to make ``path`` under; it gets its own when the block ends well, and is gone when it doesn't."""
    part = path.with_name(f"{path.name}{PART}")
    part.unlink(missing_ok=True)
    try:
        yield part
        part.chmod(0o600)
        os.replace(part, path)
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise DiskFull(what="a disk", host=os.uname().nodename) from error
        raise
    finally:
        part.unlink(missing_ok=True)
