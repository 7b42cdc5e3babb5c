"""Where an image's data lie in Ceph, as the image service writes it: ``rbd://FSID/POOL/IMAGE/SNAPSHOT``."""

from __future__ import annotations

import re
from urllib.parse import unquote

from nova.model.base import Value

SCHEME = "rbd://"
SNAPSHOT = "snap"  # as Glance calls the one that clones are made of
#: Each part becomes a word of a command: none looks like an option, or like two parts.
_PART = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}")
_FSID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


class RbdLocation(Value):
    """A snapshot of an image of a pool. ``fsid``: the cluster's."""

    fsid: str
    pool: str
    image: str
    snapshot: str

    @property
    def url(self) -> str:
        """As the image service takes it."""
        return f"{SCHEME}{self.fsid}/{self.pool}/{self.image}/{self.snapshot}"


def rbd_location(url: str) -> RbdLocation | None:
    """None: it is of another store, or malformed."""
    parts = [unquote(part) for part in url.removeprefix(SCHEME).split("/")]
    if not url.startswith(SCHEME) or len(parts) != 4:
        return None
    if not _FSID.fullmatch(parts[0]) or not all(_PART.fullmatch(part) for part in parts[1:]):
        return None
    return RbdLocation(fsid=parts[0], pool=parts[1], image=parts[2], snapshot=parts[3])
