"""The backing chain of a volume's files, as their headers say. No format is probed: the content of a raw file is
controlled by its guest."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import NamedTuple

from nova import errors, failures
from nova.privileged import guest_files
from nova.virt.libvirt.disks.header import HEADER, MAGIC

LENGTH_AT, FIRST_LENGTH = 100, 72  # offset of the header's length; the header's length in version 2
EXTENSION = struct.Struct(">II")  # kind, length
BASE_FORMAT = 0xE2792ACA
MOST_FILES = 256


class VolumeFile(NamedTuple):
    path: str
    format: str


def chain(path: str, image_format: str) -> tuple[VolumeFile, ...]:
    """Return the files from the active one down to the lowest. Raises guest.DiskUnsafe if a header cannot be read,
    names a backing file in another directory, or does not name its format."""
    found = [VolumeFile(path, image_format)]
    while found[-1].format == "qcow2":
        below = _below(Path(found[-1].path))
        if below is None:
            break
        if below.path in {one.path for one in found} or len(found) == MOST_FILES:
            raise errors.guest.DiskUnsafe(name=Path(path).name, reason="its backing chain has a loop or is too long")
        found.append(below)
    return tuple(found)


def _below(path: Path) -> VolumeFile | None:
    with failures.translated(OSError,
            lambda error: errors.guest.DiskUnsafe(name=path.name, reason=f"it cannot be read ({error.strerror})")):
        head = guest_files.head(path, guest_files.LONGEST_HEAD)
    if not head.startswith(MAGIC) or len(head) < LENGTH_AT + 4:
        raise errors.guest.DiskUnsafe(name=path.name, reason="it is not in qcow2 format")
    _magic, version, offset, length, _bits, _size = HEADER.unpack_from(head)
    if not offset:
        return None
    name = head[offset:offset + length].decode("utf-8", "surrogateescape")
    below = (path.parent / name)
    if below.parent != path.parent or below.name in ("", "..") or ":" in name:
        raise errors.guest.DiskUnsafe(name=path.name, reason="its backing file is in another directory")
    begin = struct.unpack_from(">I", head, LENGTH_AT)[0] if version >= 3 else FIRST_LENGTH
    return VolumeFile(str(below), _base_format(head, begin, path))


def _base_format(head: bytes, at: int, path: Path) -> str:
    while at + EXTENSION.size <= len(head):
        kind, length = EXTENSION.unpack_from(head, at)
        at += EXTENSION.size
        if kind == BASE_FORMAT and head[at:at + length] in (b"raw", b"qcow2"):
            return head[at:at + length].decode()
        if kind == 0:
            break
        at += (length + 7) // 8 * 8
    raise errors.guest.DiskUnsafe(name=path.name, reason="it does not name the format of its backing file")
