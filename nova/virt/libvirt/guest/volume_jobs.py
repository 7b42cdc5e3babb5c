"""Wait for block jobs of running guests: while they make progress, and until the caller cancels."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass

from nova import errors
from nova.concurrency import Clock
from nova.virt.libvirt.hypervisor import BlockJob, LibvirtHypervisor

LOG = logging.getLogger(__name__)

POLL_S, POLL_PART, LONGEST_POLL_S = 0.01, 0.05, 1.0  # polls add at most a twentieth to the job's time
STALLED_S = 300.0  # a job without progress for this time is aborted


@dataclass(frozen=True, kw_only=True)
class DiskJobs:
    hypervisor: LibvirtHypervisor
    clock: Clock

    def stop(self, server_uuid: str, target: str) -> None:
        """Stop the job of an interrupted or cancelled call; does nothing if the disk has none."""
        if self.hypervisor.block_job(server_uuid, target) is not None:
            LOG.warning("stopping the block job of disk %s", target, extra={"server": server_uuid})
            self.hypervisor.end_block_job(server_uuid, target, pivot=False)

    def wait(self, server_uuid: str, target: str, over: Callable[[BlockJob | None], bool],
             stopped: Callable[[], bool] = lambda: False) -> BlockJob | None:
        """Wait until the job is ``over``. Raises guest.DiskJobStalled; guest.DiskJobStopped if ``stopped`` is true."""
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
