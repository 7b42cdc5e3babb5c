"""Disk copies of running guests: libvirt's backup jobs in push mode, at most one per guest."""

from __future__ import annotations

import contextlib

import libvirt

from nova import errors
from nova.virt.libvirt.connection.link import Link, coded, unless
from nova.virt.libvirt.connection.objects import Domain
from nova.virt.libvirt.hypervisor import CopyState

ENDED = frozenset({libvirt.VIR_DOMAIN_JOB_COMPLETED, libvirt.VIR_DOMAIN_JOB_FAILED, libvirt.VIR_DOMAIN_JOB_CANCELLED})


class Copies(Link):
    def begin_copy(self, server_uuid: str, xml: str) -> None:
        self.on_domain("copy the guest's disk", server_uuid, lambda domain: _begin(domain, xml))

    def copy_under_way(self, server_uuid: str) -> str | None:
        with contextlib.suppress(errors.guest.NotDefined):
            return self.on_domain("look for a running disk copy", server_uuid, _under_way)
        return None

    def copy_state(self, server_uuid: str) -> CopyState:
        return self.on_domain("read the progress of a disk copy", server_uuid, _progress)

    def stop_copy(self, server_uuid: str) -> None:
        with contextlib.suppress(errors.guest.NotDefined):
            self.on_domain("stop the copy of a disk", server_uuid, _stop)


# --- run in a native thread: only libvirt calls

def _begin(domain: Domain, xml: str) -> None:
    domain.jobStats(libvirt.VIR_DOMAIN_JOB_STATS_COMPLETED)  # clears the statistics of an earlier job
    domain.backupBegin(xml, None, 0)


def _under_way(domain: Domain) -> str | None:
    with coded(libvirt.VIR_ERR_NO_DOMAIN_BACKUP, libvirt.VIR_ERR_OPERATION_INVALID):
        return domain.backupGetXMLDesc()
    return None


def _progress(domain: Domain) -> CopyState:
    """Return the state of the copy job. Statistics of an ended job stay until the guest stops or begins another job."""
    if not domain.isActive():
        return CopyState(ended=True, failure="the guest stopped")
    now = domain.jobStats()
    if now.get("type") in (libvirt.VIR_DOMAIN_JOB_BOUNDED, libvirt.VIR_DOMAIN_JOB_UNBOUNDED):
        return CopyState(done_bytes=int(now.get(libvirt.VIR_DOMAIN_JOB_DISK_PROCESSED, 0)))
    end = domain.jobStats(libvirt.VIR_DOMAIN_JOB_STATS_COMPLETED | libvirt.VIR_DOMAIN_JOB_STATS_KEEP_COMPLETED)
    if end.get(libvirt.VIR_DOMAIN_JOB_SUCCESS) == 1 or end.get("type") == libvirt.VIR_DOMAIN_JOB_COMPLETED:
        return CopyState(ended=True)
    return CopyState(ended=True, failure=str(end.get(libvirt.VIR_DOMAIN_JOB_ERRMSG) or "its job ended early"))


def _stop(domain: Domain) -> None:
    if _under_way(domain) is not None:
        unless(domain.abortJob, lambda: _under_way(domain) is None)
