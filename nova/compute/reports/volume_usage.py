"""Volume usage by guests, for ``volume.usage`` notifications: reported periodically, and at detach."""

from __future__ import annotations

import logging

from nova import failures
from nova.compute.guests.volumes import GuestVolumes
from nova.model.volumes import VolumeCounts
from nova.rpc.contracts.conductor_host import ConductorHostRPC

LOG = logging.getLogger(__name__)

MOST = 500  # volumes in a report


class VolumeUsage:
    """Reports volume usage. The hypervisor counts, and starts again from 0 when a guest starts. No caller waits for a
    report or fails with it: the next one has the same volumes."""

    def __init__(self, volumes: GuestVolumes, conductor: ConductorHostRPC, interval_s: int) -> None:
        """Set up the reports. ``interval_s``: ``[DEFAULT]volume_usage_poll_interval``; 0: nothing is reported."""
        self._volumes, self._conductor, self._interval_s = volumes, conductor, interval_s

    @property
    def interval_s(self) -> int:
        """The interval as in :class:`nova.compute.periodic.PeriodicJob`: negative means never."""
        return self._interval_s or -1

    def send_all(self) -> int:
        """Report the usage of all running guests; return the number of volumes. Raises errors of the conductor."""
        counts = [one for server_uuid in sorted(self._volumes.running()) for one in self._counts(server_uuid)]
        for start in range(0, len(counts), MOST):
            self._conductor.report_volume_usage(self._volumes.host, tuple(counts[start:start + MOST]))
        return len(counts)

    def send_last(self, server_uuid: str, volume_id: str) -> None:
        """Report the usage of a volume that is about to be detached."""
        counts = self._counts(server_uuid) if self._interval_s else ()
        last = tuple(one for one in counts if one.volume_id == volume_id)
        with failures.best_effort(LOG, "could not report the last usage of volume %s: %s", volume_id,
                extra={"server": server_uuid}):
            if last:
                self._conductor.report_volume_usage(self._volumes.host, last)

    def _counts(self, server_uuid: str) -> tuple[VolumeCounts, ...]:
        """Return a guest's counts; empty if the hypervisor provides none, because the guest may just be stopping."""
        with failures.best_effort(LOG, "the volume usage of the guest is not available now: %s", level=logging.INFO,
                extra={"server": server_uuid}):
            return self._volumes.able().volume_counts(server_uuid)
        return ()
