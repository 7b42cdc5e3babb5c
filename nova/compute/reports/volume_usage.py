"""How much guests use their volumes, for the notifications ``volume.usage``: told from time to time, and at detach."""

from __future__ import annotations

import logging

from nova import errors
from nova.compute.guests.volumes import GuestVolumes
from nova.model.volumes import VolumeCounts
from nova.rpc.contracts.conductor_host import ConductorHostRPC

LOG = logging.getLogger(__name__)

MOST = 500  # volumes in a report


class VolumeUsage:
    """Counts are the hypervisor's: they begin anew when a guest is started. Nobody waits for a report or fails with it:
    the next one has the same volumes."""

    def __init__(self, volumes: GuestVolumes, conductor: ConductorHostRPC, interval_s: int) -> None:
        """``interval_s``: ``[DEFAULT]volume_usage_poll_interval``; 0: nothing is told."""
        self._volumes, self._conductor, self._interval_s = volumes, conductor, interval_s

    @property
    def interval_s(self) -> int:
        """As a :class:`nova.compute.periodic.PeriodicJob` has it: negative is never."""
        return self._interval_s or -1

    def send_all(self) -> int:
        """Of all guests that run; how many volumes they use. Errors of the conductor."""
        counts = [one for server_uuid in sorted(self._volumes.running()) for one in self._counts(server_uuid)]
        for start in range(0, len(counts), MOST):
            self._conductor.report_volume_usage(self._volumes.host, tuple(counts[start:start + MOST]))
        return len(counts)

    def send_last(self, server_uuid: str, volume_id: str) -> None:
        """Of a volume that its guest is about to lose."""
        counts = self._counts(server_uuid) if self._interval_s else ()
        last = tuple(one for one in counts if one.volume_id == volume_id)
        try:
            if last:
                self._conductor.report_volume_usage(self._volumes.host, last)
        except errors.NovaError as error:
            LOG.warning("the last usage of volume %s could not be told: %s", volume_id, error,
                        extra={"server": server_uuid})

    def _counts(self, server_uuid: str) -> tuple[VolumeCounts, ...]:
        """None of a guest that the hypervisor tells nothing of: it may just be going."""
        try:
            return self._volumes.able().volume_counts(server_uuid)
        except errors.NovaError as error:
            LOG.info("what the guest did with its volumes is not known now: %s", error, extra={"server": server_uuid})
            return ()
