"""Locations of image data in Ceph, in the image service's form: ``rbd://FSID/POOL/IMAGE/SNAPSHOT``."""

from __future__ import annotations

import re
from urllib.parse import unquote

from nova.model.base import Value

SCHEME = "rbd://"
SNAPSHOT = "snap"  # Glance's name of the snapshot that clones are based on
#: Each part becomes an argument of a command; none can look like an option or like two arguments.
_PART = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}")
_FSID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


class RbdLocation(Value):
    """A snapshot of an image in a pool. ``fsid``: the cluster's id."""

    fsid: str
    pool: str
    image: str
    snapshot: str

    @property
    def url(self) -> str:
        """The location in the image service's form."""
        return f"{SCHEME}{self.fsid}/{self.pool}/{self.image}/{self.snapshot}"


def rbd_location(url: str) -> RbdLocation | None:
    """Parse a location; None if it belongs to another store or is malformed."""
    parts = [unquote(part) for part in url.removeprefix(SCHEME).split("/")]
    if not url.startswith(SCHEME) or len(parts) != 4:
        return None
    if not _FSID.fullmatch(parts[0]) or not all(_PART.fullmatch(part) for part in parts[1:]):
        return None
    return RbdLocation(fsid=parts[0], pool=parts[1], image=parts[2], snapshot=parts[3])
