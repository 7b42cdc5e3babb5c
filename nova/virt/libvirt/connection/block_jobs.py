"""libvirt block jobs on disks of running guests: copy, overlay, pull and commit. A disk has at most one at a time."""

from __future__ import annotations

import contextlib

import libvirt

from nova import errors
from nova.virt.libvirt.connection.link import Link, unless
from nova.virt.libvirt.connection.objects import Domain
from nova.virt.libvirt.hypervisor import BlockJob

#: The target exists with its full size, and the job is transient: the persistent definition need not be removed first.
COPY = libvirt.VIR_DOMAIN_BLOCK_COPY_REUSE_EXT | libvirt.VIR_DOMAIN_BLOCK_COPY_TRANSIENT_JOB

#: Disks only, into overlay files that exist already; libvirt keeps no snapshot metadata.
SNAPSHOT = (libvirt.VIR_DOMAIN_SNAPSHOT_CREATE_DISK_ONLY | libvirt.VIR_DOMAIN_SNAPSHOT_CREATE_REUSE_EXT
            | libvirt.VIR_DOMAIN_SNAPSHOT_CREATE_NO_METADATA | libvirt.VIR_DOMAIN_SNAPSHOT_CREATE_ATOMIC)


class BlockJobs(Link):
    def begin_block_copy(self, server_uuid: str, target: str, xml: str) -> None:
        self.on_domain("copy the guest's disk", server_uuid, lambda domain: domain.blockCopy(target, xml, {}, COPY))

    def snapshot_disk(self, server_uuid: str, xml: str) -> None:
        self.on_domain("add an overlay to a disk", server_uuid,
                       lambda domain: domain.snapshotCreateXML(xml, SNAPSHOT), lasts=True)

    def begin_block_pull(self, server_uuid: str, target: str, base: str | None) -> None:
        self.on_domain("merge the files of a disk", server_uuid, lambda domain: domain.blockRebase(
            target, base, 0, libvirt.VIR_DOMAIN_BLOCK_REBASE_RELATIVE if base else 0))

    def begin_block_commit(self, server_uuid: str, target: str, base: str, top: str) -> None:
        self.on_domain("merge the files of a disk", server_uuid, lambda domain: domain.blockCommit(
            target, base, top, 0, libvirt.VIR_DOMAIN_BLOCK_COMMIT_RELATIVE))

    def block_job(self, server_uuid: str, target: str) -> BlockJob | None:
        with contextlib.suppress(errors.guest.NotDefined):
            return self.on_domain("read the progress of a block job", server_uuid, lambda domain: _job(domain, target))
        return None

    def end_block_job(self, server_uuid: str, target: str, pivot: bool) -> None:
        self.on_domain("end the disk's job", server_uuid, lambda domain: _end(domain, target, pivot), lasts=True)


# --- run in a native thread: only libvirt calls

def _job(domain: Domain, target: str) -> BlockJob | None:
    if not domain.isActive():
        return None
    found = domain.blockJobInfo(target, 0)
    return BlockJob(found["cur"], found["end"]) if found else None


def _end(domain: Domain, target: str, pivot: bool) -> None:
    if pivot:
        domain.blockJobAbort(target, libvirt.VIR_DOMAIN_BLOCK_JOB_ABORT_PIVOT)
    else:
        unless(lambda: domain.blockJobAbort(target, 0), lambda: _job(domain, target) is None)
