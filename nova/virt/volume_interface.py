"""What a driver does with the data of volumes that guests have: a part of :class:`nova.virt.interface.Volumes`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from nova.model.guest.orders import VolumeOrder, VolumeSnapshotOrder
from nova.model.server.states import PowerState
from nova.model.volumes import VolumeCounts


class VolumeJobs(Protocol):
    """Volumes that become others, files that come to volumes and go, and how much is read and written."""

    def swap_volume(self, order: VolumeOrder, stopped: Callable[[], bool]) -> PowerState:
        """Connect ``order.successor``, copy the volume of the running guest to it, and make it the guest's disk, by the
        volume's id; disconnect the old one. Nothing when it is. HostRefused, or Conflict (``stopped`` is asked
        meanwhile; true: give up): the guest has the old one, and nothing is left of the other."""

    def unswap_volume(self, order: VolumeOrder) -> PowerState:
        """Stop a copy that was begun, and disconnect ``order.successor``. guest.HasSuccessor: it is the guest's
        disk."""

    def snapshot_volume(self, order: VolumeSnapshotOrder) -> PowerState:
        """What the guest writes to the volume, a file, goes to ``order.new_file`` beside it from now on, whether it
        runs or not. Nothing when it does. HostRefused; guest.NoVolumeFile."""

    def merge_volume_snapshot(self, order: VolumeSnapshotOrder, stopped: Callable[[], bool]) -> PowerState:
        """Take a file out of the volume's chain, as the order says. Nothing when it is out. HostRefused; Conflict
        (``stopped`` is asked meanwhile; true: give up); guest.NoVolumeFile; guest.NotRunning: it would have to."""

    def volume_counts(self, server_uuid: str) -> tuple[VolumeCounts, ...]:
        """What the guest did with each volume that it has as it runs. None of a guest that does not run."""
