"""Snapshots without an upload: created where the image service stores its images."""

from __future__ import annotations

from typing import Protocol

from nova.model.image.rbd_locations import RbdLocation


class DirectSnapshots(Protocol):
    """Snapshots that ``Snapshots.take_snapshot`` reported as ``in_ceph``."""

    def location(self, image_id: str) -> RbdLocation | None:
        """Return the snapshot's location; None if Ceph has no such snapshot, or only an incomplete one."""

    def bring(self, server_uuid: str, image_id: str) -> str:
        """Copy the snapshot to a file of this host, for an image service that does not accept it; return its path."""
