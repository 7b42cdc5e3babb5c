"""Snapshots that need no upload: they are made where the image service keeps its images."""

from __future__ import annotations

from typing import Protocol

from nova.model.image.rbd_locations import RbdLocation


class DirectSnapshots(Protocol):
    """What became of ``Snapshots.take_snapshot`` where it says ``in_ceph``."""

    def location(self, image_id: str) -> RbdLocation | None:
        """None: there is no such snapshot in Ceph (any more), or it is not whole."""

    def bring(self, server_uuid: str, image_id: str) -> str:
        """As a file of this host instead, where the image service does not take it as it is; the file's path."""
