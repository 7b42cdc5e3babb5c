"""The volume proxy of old API versions: forwarded with the user's own token."""

from __future__ import annotations

import contextlib

from nova import errors
from nova.conductor.engine.deps import Deps
from nova.model.volumes import (
    NewVolume,
    NewVolumeSnapshot,
    Volume,
    VolumeMetadataChange,
    VolumeQuery,
    VolumeSnapshot,
)


class VolumeQueries:
    """The calls of VolumeProxyCalls; errors are those of :mod:`nova.clients.cinder`."""

    def __init__(self, deps: Deps) -> None:
        self.deps = deps

    def list_volumes(self, query: VolumeQuery) -> tuple[Volume, ...]:
        """Return volumes in the volume service's order; none without a volume service, because clients list them on
        every page."""
        with contextlib.suppress(errors.volume.NoService):
            return tuple(self.deps.volumes.list(query, as_user=True))
        return ()

    def get_volume(self, volume_id: str) -> Volume:
        """Return a volume. Raises volume.NotFound, also without a volume service."""
        with contextlib.suppress(errors.volume.NoService):
            return self.deps.volumes.get(volume_id, as_user=True)
        raise errors.volume.NotFound(volume=volume_id)

    def create_volume(self, new: NewVolume) -> Volume:
        """Create a volume. Raises volume.OverQuota, Refused, SnapshotNotFound."""
        return self.deps.volumes.create(new, as_user=True)

    def delete_volume(self, volume_id: str) -> None:
        """Delete a volume. Raises volume.NotFound, Refused."""
        self.deps.volumes.delete(volume_id, as_user=True)

    def change_volume_metadata(self, change: VolumeMetadataChange) -> None:
        """Change the metadata of a volume or snapshot. Raises volume.NotFound, SnapshotNotFound, Refused."""
        self.deps.volumes.change_metadata(change, as_user=True)

    def list_volume_snapshots(self, query: VolumeQuery) -> tuple[VolumeSnapshot, ...]:
        """Return snapshots in the volume service's order; none without a volume service."""
        with contextlib.suppress(errors.volume.NoService):
            return tuple(self.deps.volumes.list_snapshots(query, as_user=True))
        return ()

    def get_volume_snapshot(self, snapshot_id: str) -> VolumeSnapshot:
        """Return a snapshot. Raises volume.SnapshotNotFound, also without a volume service."""
        with contextlib.suppress(errors.volume.NoService):
            return self.deps.volumes.get_snapshot(snapshot_id, as_user=True)
        raise errors.volume.SnapshotNotFound(snapshot=snapshot_id)

    def create_volume_snapshot(self, new: NewVolumeSnapshot) -> VolumeSnapshot:
        """Create a snapshot. Raises volume.NotFound, Refused, OverQuota."""
        return self.deps.volumes.create_snapshot(new, as_user=True)

    def delete_volume_snapshot(self, snapshot_id: str) -> None:
        """Delete a snapshot. Raises volume.SnapshotNotFound, Refused."""
        self.deps.volumes.delete_snapshot(snapshot_id, as_user=True)
