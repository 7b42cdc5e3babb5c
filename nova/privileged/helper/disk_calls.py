"""Calls for guests' disks: files below instances_path, volumes of one group, images of Ceph pools.

Tools run in the sandbox and see only the files of their call; a file is bound there by the descriptor with which it was
checked.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

from msgspec import Meta, Struct

from nova.privileged import config_drives, disk_exports, filesystems, guest_files, inspection, sandbox
from nova.privileged.disk_exports import ExportOffer, ExportSource, Listen, ReadExport
from nova.privileged.helper import arguments as types
from nova.privileged.helper.calling import HelperCall, call
from nova.privileged.lvm import Lvm
from nova.privileged.qemu_img import ImageFile, Overlay, QemuImg, ToolLimits
from nova.privileged.runner import Completed

#: A file, a device of nova's group, or an image in Ceph; :meth:`HelperCall.disk` distinguishes them.
DiskPath = Annotated[str, Meta(pattern=r"\A(rbd:[!-~]{1,500}|(/(?!\.{1,2}(/|\Z))[^/\x00\n]{1,255})+)\Z",
                               max_length=4096)]
MOST_BELOW = 256


class GivenLimits(Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """Wire form of ``nova.privileged.qemu_img.ToolLimits``."""

    cpu_s: Annotated[int, Meta(ge=1, le=7 * 86400)]
    memory_mb: Annotated[int, Meta(ge=64, le=1 << 20)]
    file_bytes: types.Bytes | None = None


class GivenImage(Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """Wire form of ``nova.privileged.qemu_img.ImageFile``."""

    path: DiskPath
    format: types.DiskFormat
    over: types.HostPathOrNone = ""


class GivenOverlay(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Wire form of ``nova.privileged.qemu_img.Overlay``."""

    path: types.HostPath
    base: types.HostPath
    base_format: types.WritableFormat
    size_bytes: types.Bytes


def _tool(call: HelperCall, limits: GivenLimits, timeout_s: float) -> QemuImg:
    """Return the tool. It must be created after the call's files are opened, because its programs inherit them."""
    return QemuImg(ToolLimits(limits.cpu_s, limits.memory_mb, limits.file_bytes), timeout_s, call.tools)


def _image(call: HelperCall, given: GivenImage, new: bool = False) -> ImageFile:
    return ImageFile(call.disk(given.path, new), given.format, call.file(given.over) if given.over else "")


@call("qemu_img.convert")
def convert(call: HelperCall, limits: GivenLimits, timeout_s: types.Seconds, source: GivenImage, target: GivenImage,
            max_bytes: types.Bytes | None = None) -> None:
    files = _image(call, source), _image(call, target, new=True)
    _tool(call, limits, timeout_s).convert(*files, max_bytes)


@call("qemu_img.fill")
def fill(call: HelperCall, limits: GivenLimits, timeout_s: types.Seconds, source: GivenImage,
         target: GivenImage) -> None:
    files = _image(call, source), _image(call, target)
    _tool(call, limits, timeout_s).fill(*files)


class GivenSource(Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """Wire form of ``nova.privileged.disk_exports.ExportSource``."""

    address: Annotated[str, Meta(pattern=r"\A[A-Za-z0-9:][A-Za-z0-9:._-]{0,253}\Z")]
    port: types.Port
    secret: Annotated[str, Meta(pattern=r"\A[0-9A-Za-z]{1,128}\Z")]


class GivenExport(Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """Wire form of ``nova.privileged.disk_exports.ReadExport``."""

    source: GivenSource
    keys: types.HostPath


@call("qemu_img.fetch")
def fetch(call: HelperCall, limits: GivenLimits, timeout_s: types.Seconds, export: GivenExport, target: types.HostPath,
          max_bytes: types.Bytes | None = None) -> None:
    given, made = export.source, call.made(target)
    read = ReadExport(ExportSource(given.address, given.port, given.secret), call.folders.folder(export.keys))
    _tool(call, limits, timeout_s).fetch(read, made, max_bytes)


@call("qemu_img.rebase")
def rebase(call: HelperCall, limits: GivenLimits, timeout_s: types.Seconds, path: types.HostPath, base: types.HostPath,
           base_format: types.WritableFormat) -> None:
    files = call.file(path), call.file(base)
    _tool(call, limits, timeout_s).rebase(*files, base_format)


@call("qemu_img.pull")
def pull(call: HelperCall, limits: GivenLimits, timeout_s: types.Seconds, path: types.HostPath,
         base: tuple[types.FileName, types.WritableFormat] | None,
         below: Annotated[tuple[types.HostPath, ...], Meta(max_length=MOST_BELOW)]) -> None:
    files = call.file(path), [call.file(one) for one in below]
    _tool(call, limits, timeout_s).pull(files[0], base, files[1])


@call("qemu_img.create")
def create(call: HelperCall, limits: GivenLimits, timeout_s: types.Seconds, path: types.HostPath,
           image_format: types.WritableFormat, size_bytes: types.Bytes) -> None:
    made = call.made(path)
    _tool(call, limits, timeout_s).create(made, image_format, size_bytes)


@call("qemu_img.create_overlay")
def create_overlay(call: HelperCall, limits: GivenLimits, timeout_s: types.Seconds, overlay: GivenOverlay) -> None:
    made = Overlay(call.made(overlay.path), call.file(overlay.base), overlay.base_format, overlay.size_bytes)
    _tool(call, limits, timeout_s).create_overlay(made)


@call("qemu_img.resize")
def resize(call: HelperCall, limits: GivenLimits, timeout_s: types.Seconds, disk: GivenImage,
           size_bytes: types.Bytes) -> None:
    given = _image(call, disk)
    _tool(call, limits, timeout_s).resize(given, size_bytes)


@call("inspection.inspect")
def inspect(call: HelperCall, path: types.HostPath) -> Completed:
    opened = call.file(path)
    return inspection.inspect(call.tools(inspection.LONGEST_S), opened)


@call("sandbox.check")
def check(call: HelperCall) -> None:
    sandbox.check(call.tools(30.0))


@call("filesystems.make")
def make_filesystem(call: HelperCall, filesystem: types.Label, label_: types.Label, path: types.HostPath) -> None:
    disk = call.disk(path)
    filesystems.make(call.tools(1200.0), filesystem, label_, disk)


@call("config_drives.make_iso")
def make_iso(call: HelperCall, tree: types.HostPath, target: types.HostPath) -> None:
    folder, made = call.folders.folder(tree), call.made(target)
    config_drives.make_iso(call.tools(120.0), folder, made)


@call("config_drives.make_vfat")
def make_vfat(call: HelperCall, tree: types.HostPath, target: types.HostPath) -> None:
    folder, made = call.folders.folder(tree), call.made(target)
    config_drives.make_vfat(call.tools(120.0), folder, made)


# --- files that may no longer belong to the calling daemon

@call("guest_files.read_head")
def read_head(call: HelperCall, path: types.HostPath, length: Annotated[int, Meta(ge=0, le=guest_files.LONGEST_HEAD)]
              ) -> bytes:
    return guest_files.read_head(call.file(path), length)


@call("guest_files.read_tail")
def read_tail(call: HelperCall, path: types.HostPath, length: Annotated[int, Meta(ge=0, le=guest_files.LONGEST_TAIL)]
              ) -> bytes | None:
    return guest_files.read_tail(call.file(path), length)


@call("guest_files.give")
def give(call: HelperCall, path: types.HostPath) -> None:
    opened = call.file(path)
    folder = os.stat(call.folders.folder(os.path.dirname(path)).place)
    os.chown(opened.place, folder.st_uid, folder.st_gid)


@call("guest_files.touch")
def touch(call: HelperCall, path: types.HostPath) -> None:
    guest_files.touch(call.file(path))


@call("guest_files.copy")
def copy(call: HelperCall, source: types.HostPath, target: types.HostPath) -> None:
    files = call.file(source), call.made(target)
    guest_files.copy(call.tools(6 * 3600.0), *files)


@call("guest_files.luks_header")
def luks_header(call: HelperCall, path: Annotated[str, Meta(pattern=r"\A/dev/[A-Za-z0-9_.:/-]{1,200}\Z")]) -> bytes:
    if ".." in Path(path).parts or not stat.S_ISBLK(os.stat(path).st_mode):
        raise call.refused(f"{path} is not a block device")
    return guest_files.luks_header(path)


# --- volumes of one group

Group = Annotated[str, Meta(pattern=r"\A[A-Za-z0-9+_.][A-Za-z0-9+_.-]{0,126}\Z")]


def _lvm(call: HelperCall, group: str) -> Lvm:
    if not call.settings.volume_group or group != call.settings.volume_group:
        raise call.refused(f"{group} is not [libvirt]images_volume_group")
    return Lvm(group, call.runner(1200.0), call.settings.clearing)


@call("lvm.volumes")
def volumes(call: HelperCall, group: Group) -> Mapping[str, int]:
    return _lvm(call, group).volumes()


@call("lvm.space")
def space(call: HelperCall, group: Group) -> tuple[int, int]:
    return _lvm(call, group).space()


@call("lvm.create")
def create_volume(call: HelperCall, group: Group, name: types.VolumeName, size_bytes: types.Bytes) -> None:
    _lvm(call, group).create(name, size_bytes)


@call("lvm.rename")
def rename_volume(call: HelperCall, group: Group, old: types.VolumeName, new: types.VolumeName) -> None:
    _lvm(call, group).rename(old, new)


@call("lvm.grow")
def grow_volume(call: HelperCall, group: Group, name: types.VolumeName, size_bytes: types.Bytes) -> None:
    _lvm(call, group).grow(name, size_bytes)


@call("lvm.remove")
def remove_volume(call: HelperCall, group: Group, name: types.VolumeName) -> None:
    _lvm(call, group).remove(name)


# --- disks exported to another host, to which a guest moves

GUEST_FOLDER = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}(_resize)?")
ExportName = Annotated[str, Meta(pattern=r"\A[A-Za-z0-9][A-Za-z0-9._:-]{0,100}\Z")]


def _of_exports(call: HelperCall, folder: str) -> Path:
    name = os.path.basename(folder)
    if not GUEST_FOLDER.fullmatch(name) or folder != str(call.settings.instances_path / name):
        raise call.refused(f"{folder[:200]} is not the directory of a guest")
    return call.own("exports") / name


@call("disk_exports.offer")
def offer(call: HelperCall, folder: types.HostPath,
          files: Annotated[dict[ExportName, types.HostPath], Meta(max_length=MOST_BELOW)],
          listen: tuple[str, tuple[int, int]]) -> ExportOffer:
    """Export disks; the helper's own configuration determines the address."""
    own = _of_exports(call, folder)
    opened = {name: call.file(path) for name, path in files.items()}
    own.mkdir(mode=0o700, exist_ok=True)
    return disk_exports.offer(own, opened, Listen(call.settings.export_address, call.settings.export_ports))


@call("disk_exports.withdraw")
def withdraw(call: HelperCall, folder: types.HostPath) -> None:
    own = _of_exports(call, folder)
    if own.is_dir():
        disk_exports.withdraw(own)
        own.rmdir()
