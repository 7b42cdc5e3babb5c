"""Images that lie ready on a host: what their names say, how big the disk in them is, and whether it fits.

A ready image was checked when it was fetched and nobody writes to it, so its own header may be believed.
"""

from __future__ import annotations

import os
import struct

from nova import errors
from nova.model.image.images import Image

GIB = 1 << 30
KEPT_SUFFIX = ".qcow2"  # of a qcow2 image that is kept as it is; all others are raw
QCOW2_SIZE_AT = 24


def format_of(path: str) -> str:
    """The format of a ready image, by its name."""
    return "qcow2" if path.endswith(KEPT_SUFFIX) else "raw"


def virtual_bytes(path: str) -> int:
    """The size of the disk that a ready image holds."""
    if format_of(path) == "raw":
        return os.path.getsize(path)
    with open(path, "rb") as source:
        source.seek(QCOW2_SIZE_AT)
        return struct.unpack(">Q", source.read(8))[0]


def check_size(image: Image, size_bytes: int, root_gb: int) -> None:
    """image.TooBig when an image does not fit on a disk of ``root_gb``."""
    needs_gb = max(image.min_disk_gb, -(-size_bytes // GIB))
    if needs_gb > root_gb:
        raise errors.image.TooBig(image_id=image.id, needs_gb=needs_gb, root_gb=root_gb)
