"""Jobs on the disks of running guests, waited for: as long as they get on, and as somebody wants them."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass

from nova import errors
from nova.concurrency import Clock
from nova.virt.libvirt.hypervisor import BlockJob, LibvirtHypervisor

LOG = logging.getLogger(__name__)

POLL_S, POLL_PART, LONGEST_POLL_S = 0.01, 0.05, 1.0  # a job is waited for a twentieth longer than it takes
STALLED_S = 300.0  # a job that does not get on for so long is given up


@dataclass(frozen=True, kw_only=True)
class DiskJobs:
    hypervisor: LibvirtHypervisor
    clock: Clock

    def stop(self, server_uuid: str, target: str) -> None:
        """Of a call that was cut off, or is given up. Nothing when the disk has no job."""
        if self.hypervisor.block_job(server_uuid, target) is not None:
            LOG.warning("stopping a job on disk %s", target, extra={"server": server_uuid})
            self.hypervisor.end_block_job(server_uuid, target, pivot=False)

    def wait(self, server_uuid: str, target: str, over: Callable[[BlockJob | None], bool],
             stopped: Callable[[], bool] = lambda: False) -> BlockJob | None:
        """Until the job is ``over``. guest.DiskJobStalled; guest.DiskJobStopped: ``stopped`` says so."""
        began = since = self.clock.now()
        done_bytes = -1
        while not over(job := self.hypervisor.block_job(server_uuid, target)):
            if stopped():
                raise errors.guest.DiskJobStopped(uuid=server_uuid, disk=target)
            if job is not None and job.done_bytes != done_bytes:
                done_bytes, since = job.done_bytes, self.clock.now()
            elif self.clock.now() - since > STALLED_S:
                raise errors.guest.DiskJobStalled(uuid=server_uuid, disk=target, seconds=STALLED_S)
            self.clock.sleep(min(LONGEST_POLL_S, max(POLL_S, POLL_PART * (self.clock.now() - began))))
        return job
