"""Disk file headers, parsed by nova itself: files from another host are checked before use.

qcow2's header: https://gitlab.com/qemu-project/qemu/-/blob/master/docs/interop/qcow2.txt
"""

from __future__ import annotations

import struct
from pathlib import Path

from nova import errors
from nova.privileged import guest_files

MAGIC = b"QFI\xfb"
HEADER = struct.Struct(">4sIQIIQ")  # magic, version, backing file's offset and length, cluster bits, size
FEATURES_AT, EXTERNAL_DATA = 72, 1 << 2
SECTOR = 512


def size(path: Path, disk_format: str) -> int:
    """Return the disk's virtual size, in bytes. Raises guest.DiskUnsafe."""
    return _header(path)[5] if disk_format == "qcow2" else path.stat().st_size


def refers(path: Path) -> bool:
    """Return whether a qcow2 file has a backing file. Raises guest.DiskUnsafe if it has an external data file."""
    return bool(_header(path)[2])


def _header(path: Path) -> tuple[bytes, int, int, int, int, int]:
    start = guest_files.head(path, FEATURES_AT + 8)
    if len(start) < FEATURES_AT + 8 or not start.startswith(MAGIC):
        raise errors.guest.DiskUnsafe(name=path.name, reason="it is not in qcow2 format")
    found = HEADER.unpack_from(start)
    if found[1] >= 3 and struct.unpack_from(">Q", start, FEATURES_AT)[0] & EXTERNAL_DATA:
        raise errors.guest.DiskUnsafe(name=path.name, reason="it has an external data file")
    return found
