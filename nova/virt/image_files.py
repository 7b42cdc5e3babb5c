"""Cached images of a host: format, virtual size, and whether they fit on a disk.

A cached image was checked when it was fetched and is never modified, so its own header can be trusted.
"""

from __future__ import annotations

import os
import struct

from nova import errors
from nova.model.image.images import Image

GIB = 1 << 30
KEPT_SUFFIX = ".qcow2"  # of an image that stays qcow2; all others are raw
QCOW2_SIZE_AT = 24


def format_of(path: str) -> str:
    """Return the format of a cached image, from its name."""
    return "qcow2" if path.endswith(KEPT_SUFFIX) else "raw"


def virtual_bytes(path: str) -> int:
    """Return the virtual size of a cached image, in bytes."""
    if format_of(path) == "raw":
        return os.path.getsize(path)
    with open(path, "rb") as source:
        source.seek(QCOW2_SIZE_AT)
        return struct.unpack(">Q", source.read(8))[0]


def check_size(image: Image, size_bytes: int, root_gb: int) -> None:
    """Raise image.TooBig if an image does not fit on a disk of ``root_gb``."""
    needs_gb = max(image.min_disk_gb, -(-size_bytes // GIB))
    if needs_gb > root_gb:
        raise errors.image.TooBig(image_id=image.id, needs_gb=needs_gb, root_gb=root_gb)
