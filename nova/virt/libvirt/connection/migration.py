"""Live migration (https://libvirt.org/migration.html): peer to peer, controlled by the source's libvirtd."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping

import libvirt

from nova import errors
from nova.model.server.migrations import MigrationProgress
from nova.virt.libvirt.connection.link import Link, reason_of
from nova.virt.libvirt.connection.objects import Connect, Domain
from nova.virt.libvirt.hypervisor import CpuComparison, MigrationParams, RunningMigration

ALWAYS = (libvirt.VIR_MIGRATE_LIVE | libvirt.VIR_MIGRATE_PEER2PEER | libvirt.VIR_MIGRATE_PERSIST_DEST
          | libvirt.VIR_MIGRATE_UNDEFINE_SOURCE)
MOVING_XML = libvirt.VIR_DOMAIN_XML_MIGRATABLE | libvirt.VIR_DOMAIN_XML_SECURE
AWAY = [libvirt.VIR_DOMAIN_SHUTOFF, libvirt.VIR_DOMAIN_SHUTOFF_MIGRATED]
INCOMING = {libvirt.VIR_DOMAIN_JOB_OPERATION_MIGRATION_OUT: False, libvirt.VIR_DOMAIN_JOB_OPERATION_MIGRATION_IN: True}
OVER = frozenset({libvirt.VIR_DOMAIN_JOB_NONE, libvirt.VIR_DOMAIN_JOB_COMPLETED, libvirt.VIR_DOMAIN_JOB_FAILED,
                  libvirt.VIR_DOMAIN_JOB_CANCELLED})


class MigrationConnection(Link):
    def migratable_xml(self, server_uuid: str) -> str:
        return self.on_domain("read the guest's definition", server_uuid, lambda domain: domain.XMLDesc(MOVING_XML))

    def cpu_incompatibility(self, question: CpuComparison) -> str:
        return self.call("compare processors", lambda connection: _unfit(connection, question))

    def migrate(self, server_uuid: str, departure: MigrationParams) -> None:
        self.on_domain("migrate the guest", server_uuid, lambda domain: _migrate(domain, departure), lasts=True)

    def job(self, server_uuid: str) -> RunningMigration | None:
        with contextlib.suppress(errors.guest.NotDefined):
            return self.on_domain("read the progress of a migration", server_uuid, _job)
        return None

    def migrated(self, server_uuid: str) -> bool:
        with contextlib.suppress(errors.guest.NotDefined):
            return self.on_domain("read a guest's state", server_uuid, lambda domain: domain.state() == AWAY)
        return True

    def abort_migration(self, server_uuid: str) -> None:
        self.on_domain("abort the migration", server_uuid, _abort)

    def start_post_copy(self, server_uuid: str) -> None:
        self.on_domain("start post-copy", server_uuid, lambda domain: domain.migrateStartPostCopy(0))

    def set_downtime(self, server_uuid: str, milliseconds: int) -> None:
        self.on_domain("set the downtime", server_uuid, lambda domain: domain.migrateSetMaxDowntime(milliseconds, 0))


# --- run in a native thread: only libvirt calls

def _abort(domain: Domain) -> None:
    try:
        domain.abortJob()
    except libvirt.libvirtError as error:
        if error.get_error_code() != libvirt.VIR_ERR_OPERATION_INVALID:
            raise
        raise errors.move.MigrationNone(uuid=domain.UUIDString()) from None  # not begun yet, or over


def _unfit(connection: Connect, question: CpuComparison) -> str:
    try:
        connection.compareHypervisorCPU(None, question.arch, question.machine, question.virt_type, question.cpu,
                                        libvirt.VIR_CONNECT_COMPARE_CPU_FAIL_INCOMPATIBLE)
    except libvirt.libvirtError as error:
        if error.get_error_code() != libvirt.VIR_ERR_CPU_INCOMPATIBLE:
            raise
        return reason_of(error)
    return ""


def _migrate(domain: Domain, departure: MigrationParams) -> None:
    flags = ALWAYS
    for wanted, flag in ((departure.disks, libvirt.VIR_MIGRATE_NON_SHARED_INC),
                         # libvirt recognizes shared storage by the file system's type, and misses some
                         (departure.shared, libvirt.VIR_MIGRATE_UNSAFE),
                         (departure.auto_converge, libvirt.VIR_MIGRATE_AUTO_CONVERGE),
                         (departure.post_copy, libvirt.VIR_MIGRATE_POSTCOPY)):
        flags |= flag if wanted else 0
    given: dict[str, str | int | list[str]] = {libvirt.VIR_MIGRATE_PARAM_DEST_XML: departure.xml,
                             libvirt.VIR_MIGRATE_PARAM_PERSIST_XML: departure.xml,
                             libvirt.VIR_MIGRATE_PARAM_URI: departure.memory_uri}
    if departure.disks:
        given[libvirt.VIR_MIGRATE_PARAM_DISKS_URI] = departure.disks_uri
        given[libvirt.VIR_MIGRATE_PARAM_MIGRATE_DISKS] = list(departure.disks)
    if departure.bandwidth_mib:
        given[libvirt.VIR_MIGRATE_PARAM_BANDWIDTH] = departure.bandwidth_mib
    domain.migrateToURI3(departure.uri, given, flags)


def _job(domain: Domain) -> RunningMigration | None:
    try:
        stats = domain.jobStats()
    except libvirt.libvirtError as error:
        if error.get_error_code() == libvirt.VIR_ERR_OPERATION_INVALID:  # the guest has just stopped
            return None
        raise
    incoming = INCOMING.get(stats.get(libvirt.VIR_DOMAIN_JOB_OPERATION))
    if stats.get("type", libvirt.VIR_DOMAIN_JOB_NONE) in OVER or incoming is None:
        return None
    progress = _progress(stats)
    total = progress.memory_total_bytes + progress.disk_total_bytes
    left = progress.memory_remaining_bytes + progress.disk_remaining_bytes
    percent = max(0, min(100, 100 - 100 * left // total)) if total else 0
    return RunningMigration(incoming=incoming, progress=progress, percent=percent)


def _progress(stats: Mapping[str, int | str]) -> MigrationProgress:
    return MigrationProgress(**{f"{what}_{count}_bytes": int(stats.get(f"{what}_{count}", 0))
                                for what in ("memory", "disk") for count in ("total", "processed", "remaining")})
