"""The data of guests' volumes: the part of :class:`nova.virt.interface.Volumes` that swaps, snapshots and counts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from nova.model.guest.orders import VolumeOrder, VolumeSnapshotOrder
from nova.model.server.states import PowerState
from nova.model.volumes import VolumeCounts


class VolumeJobs(Protocol):
    """Swap volumes, add and merge snapshot files of volumes, and count reads and writes."""

    def swap_volume(self, order: VolumeOrder, stopped: Callable[[], bool]) -> PowerState:
        """Connect ``order.successor``, copy the running guest's volume to it, and make it the guest's disk, under the
        volume's id; then disconnect the old one. Does nothing if that is done. ``stopped`` is polled meanwhile; true
        cancels. Raises HostRefused or Conflict: the guest keeps the old volume, and nothing is left of the other."""

    def unswap_volume(self, order: VolumeOrder) -> PowerState:
        """Stop a copy that has begun, and disconnect ``order.successor``. Raises guest.HasSuccessor if it is the
        guest's disk."""

    def snapshot_volume(self, order: VolumeSnapshotOrder) -> PowerState:
        """Redirect the guest's writes to the volume's file to ``order.new_file`` next to it, whether the guest runs or
        not. Does nothing if that is done. Raises HostRefused; guest.NoVolumeFile."""

    def merge_volume_snapshot(self, order: VolumeSnapshotOrder, stopped: Callable[[], bool]) -> PowerState:
        """Remove a file from the volume's chain, as the order says. Does nothing if it is removed. ``stopped`` is
        polled meanwhile; true cancels. Raises HostRefused; Conflict; guest.NoVolumeFile; guest.NotRunning if the guest
        must run."""

    def volume_counts(self, server_uuid: str) -> tuple[VolumeCounts, ...]:
        """Return the counters of each volume of the running guest; empty if it does not run."""
