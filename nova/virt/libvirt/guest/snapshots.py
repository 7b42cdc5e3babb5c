"""Snapshots of a guest's root disk, as complete files (``nova.virt.interface.Snapshots``).

A snapshot is in the guest's folder as ``snapshot.<image id>.<format>``, created by an atomic rename; a partial file has
another name, and the next call removes it. qemu-img copies the disk of a guest that is off. QEMU copies the disk of a
running guest in its state at one moment (a libvirt backup job) while the guest continues; its file systems are frozen
only around that moment.
"""

from __future__ import annotations

import logging
import os
import re
import time
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from nova import concurrency, errors, failures
from nova.model.guest.orders import DiskSnapshot, SnapshotOrder
from nova.model.image.rbd_locations import RbdLocation
from nova.privileged import guest_files
from nova.privileged.qemu_img import ImageFile, QemuImg
from nova.virt.libvirt.disks.backends.files import PART
from nova.virt.libvirt.disks.folders import Folder, Folders
from nova.virt.libvirt.disks.maker import DiskMaker
from nova.virt.libvirt.disks.rbd_snapshots import RbdSnapshots
from nova.virt.libvirt.disks.records import DiskRecord
from nova.virt.libvirt.disks.refusals import convert_tool_errors
from nova.virt.libvirt.guest.agent import LibvirtAgent
from nova.virt.libvirt.guest.disk_devices import path_of
from nova.virt.libvirt.hypervisor import OFF, LibvirtHypervisor, state_of
from nova.virt.libvirt.xml import running
from nova.virt.listings import files_of

LOG = logging.getLogger(__name__)

PREFIX = "snapshot."
ROOT_NAME = "disk"
LIVE_FORMAT = "qcow2"  # of a live copy: raw would allocate the whole disk, not only its data
POLL_S, POLL_PART, LONGEST_POLL_S = 0.01, 0.05, 1.0  # polls add at most a twentieth to the copy's time
STALLED_S = 300.0  # a copy without progress for this time is aborted
STOPS_WITHIN_S = 60.0
TRIES = 3  # a guest that stops or starts meanwhile is copied again
YES = frozenset({"yes", "true", "on", "1", "y", "t"})
SPARE_BYTES = 64 << 20


class SnapshotPlan(NamedTuple):
    """A snapshot of a guest's disk. ``part``: the file that QEMU or qemu-img writes."""

    uuid: str
    folder: Folder
    root: DiskRecord
    format: str
    target: Path
    part: Path

    @property
    def source(self) -> Path:
        """Return the disk's path as libvirt names it."""
        return Path(path_of(self.root, self.folder.path))


@dataclass(frozen=True, kw_only=True)
class LibvirtSnapshots:
    """Snapshots. ``format`` None: that of the guest's disk. ``direct``: snapshots within Ceph, if configured."""

    hypervisor: LibvirtHypervisor
    agent: LibvirtAgent
    folders: Folders
    disks: DiskMaker
    images: QemuImg
    format: str | None
    direct: RbdSnapshots | None = None

    def take_snapshot(self, order: SnapshotOrder) -> DiskSnapshot:
        plan = self._planned_snapshot(order)
        if (found := _find(plan.folder, order.image_id)) is not None:
            return _described(found, plan.root)
        self._clean_snapshot(plan.uuid, order.image_id)
        if self.direct is not None and plan.root.pooled and self._made_in_ceph(self.direct, plan, order):
            size = plan.root.size_bytes
            return DiskSnapshot(format="raw", size_bytes=size, virtual_size_bytes=size, in_ceph=True)
        _check_space(plan)
        try:
            for _ in range(TRIES):
                if self._copied(plan, order):
                    break
            else:
                raise errors.host.LibvirtRefused(task="copy the guest's disk",
                                                 reason="it repeatedly stops and starts")
            guest_files.take(plan.part)
            plan.part.chmod(0o600)
            os.replace(plan.part, plan.target)
        finally:
            plan.part.unlink(missing_ok=True)
        return _described(plan.target, plan.root)

    def snapshot_path(self, server_uuid: str, image_id: str) -> str | None:
        found = _find(self.folders.of(server_uuid), image_id)
        return str(found) if found is not None else None

    def drop_snapshot(self, server_uuid: str, image_id: str, given: bool = False) -> None:
        self._clean_snapshot(server_uuid, image_id)
        if self.direct is not None and not given:
            with convert_tool_errors():
                self.direct.drop(f"{server_uuid}_{ROOT_NAME}", image_id)
        if (found := _find(self.folders.of(server_uuid), image_id)) is not None:
            found.unlink(missing_ok=True)

    # --- within Ceph: nova.virt.direct_snapshots

    def location(self, image_id: str) -> RbdLocation | None:
        _stem(image_id)
        with convert_tool_errors():
            return self.direct.find(image_id) if self.direct is not None else None

    def bring(self, server_uuid: str, image_id: str) -> str:
        assert self.direct is not None
        folder = self.folders.of(server_uuid)
        target = folder.file(f"{_stem(image_id)}raw")
        part = target.with_name(f"{target.name}{PART}")
        try:
            with convert_tool_errors():
                self.images.convert(ImageFile(self.direct.kept.pool.uri(image_id), "raw"), ImageFile(str(part), "raw"))
            part.chmod(0o600)
            os.replace(part, target)
        finally:
            part.unlink(missing_ok=True)
        self.direct.drop(f"{server_uuid}_{ROOT_NAME}", image_id)
        return str(target)

    def _made_in_ceph(self, direct: RbdSnapshots, plan: SnapshotPlan, order: SnapshotOrder) -> bool:
        """Make the snapshot in Ceph; False if Ceph or this host's user of it cannot, so that the caller copies to a
        file."""
        with failures.best_effort(LOG, "could not make the snapshot in Ceph; copying it to a file: %s",
                on=errors.HostRefused, extra={"server": plan.uuid}):
            with convert_tool_errors():
                if direct.find(order.image_id) is None:
                    quiet = self.agent.quiet(plan.uuid, _must_be_quiet(order))
                    direct.make(plan.root.place.rpartition("/")[2], order.image_id, quiet)
            return True
        return False

    def _planned_snapshot(self, order: SnapshotOrder) -> SnapshotPlan:
        folder = self.folders.of(order.server_uuid)
        root = next((disk for disk in folder.disks() if disk.kind == "root"), None)
        if root is None or not self.disks.exists(folder, root):
            raise errors.guest.NoDisks(uuid=order.server_uuid, names="the root disk")
        wanted = self.format or root.format
        target = folder.file(f"{_stem(order.image_id)}{wanted}")
        return SnapshotPlan(order.server_uuid, folder, root, wanted, target, target.with_name(f"{target.name}{PART}"))

    def _clean_snapshot(self, server_uuid: str, image_id: str) -> None:
        """Remove the remains of an interrupted call for this snapshot: a job, a partial file, frozen file systems."""
        folder = self.folders.of(server_uuid)
        self._stop_copy(server_uuid, str(folder.file(_stem(image_id))))
        for part in files_of(folder.path, _stem(image_id), PART):
            part.unlink(missing_ok=True)
        self.agent.thaw(server_uuid)

    # --- copy

    def _copied(self, plan: SnapshotPlan, order: SnapshotOrder) -> bool:
        """Copy the disk; False if the guest was stopped or started meanwhile."""
        state = self.hypervisor.state(plan.uuid)
        if state is None or state in OFF:
            with convert_tool_errors():
                source = self.disks.source(plan.folder, plan.root)
                self.images.convert(ImageFile(source, plan.root.format, plan.root.backing or ""),
                                    ImageFile(str(plan.part), plan.format))
            return self.hypervisor.state(plan.uuid) in OFF | {None}
        if plan.format == LIVE_FORMAT:
            return self._copy_live(plan, order, plan.part)
        live = plan.part.with_name(f"{plan.target.name}.{LIVE_FORMAT}{PART}")
        try:
            if not self._copy_live(plan, order, live):
                return False
            with convert_tool_errors():
                self.images.convert(ImageFile(str(live), LIVE_FORMAT), ImageFile(str(plan.part), plan.format))
            return True
        finally:
            live.unlink(missing_ok=True)

    def _copy_live(self, plan: SnapshotPlan, order: SnapshotOrder, path: Path) -> bool:
        definition = self.hypervisor.definition(plan.uuid)
        disk = running.target_of(definition, str(plan.source))
        if disk is None:
            raise errors.guest.NoDisks(uuid=plan.uuid, names="the root disk")
        path.unlink(missing_ok=True)
        copy = running.copy_xml(definition, disk, str(path), LIVE_FORMAT)

        def undo() -> None:
            self._stop_copy(plan.uuid, str(path))
            path.unlink(missing_ok=True)
        with failures.on_failure(undo, on=BaseException):
            with self.agent.quiet(plan.uuid, _must_be_quiet(order)):
                self.hypervisor.begin_copy(plan.uuid, copy)
            failure = self._await_copy(plan.uuid)
        if not failure:
            return True
        path.unlink(missing_ok=True)
        if state_of(self.hypervisor, plan.uuid) in OFF:
            return False
        raise errors.host.LibvirtRefused(task="copy the guest's disk", reason=failure)

    def _stop_copy(self, server_uuid: str, path: str) -> None:
        """Stop a copy into files that begin with ``path``, and wait for its end, because QEMU writes until then."""
        hypervisor, deadline = self.hypervisor, time.monotonic() + STOPS_WITHIN_S
        asked = False
        while (copy := hypervisor.copy_under_way(server_uuid)) is not None:
            if not any(file.startswith(path) for file in running.copies_to(copy)):
                return
            if not asked:
                LOG.warning("stopping an unfinished copy of the guest's disk", extra={"server": server_uuid})
                hypervisor.stop_copy(server_uuid)
                asked = True
            if time.monotonic() > deadline:
                raise errors.server.SnapshotStalled(uuid=server_uuid, seconds=int(STOPS_WITHIN_S))
            concurrency.sleep(POLL_S)

    def _await_copy(self, server_uuid: str) -> str:
        """Wait for the copy; return why it failed, or an empty text."""
        began = since = time.monotonic()
        done_bytes = -1
        while not (state := self.hypervisor.copy_state(server_uuid)).ended:
            if state.done_bytes != done_bytes:
                done_bytes, since = state.done_bytes, time.monotonic()
            elif time.monotonic() - since > STALLED_S:
                raise errors.server.SnapshotStalled(uuid=server_uuid, seconds=int(STALLED_S))
            concurrency.sleep(min(LONGEST_POLL_S, max(POLL_S, POLL_PART * (time.monotonic() - began))))
        return state.failure


def _must_be_quiet(order: SnapshotOrder) -> bool:
    image = order.build.image if order.build is not None else None
    said = image.properties.get("os_require_quiesce", "") if image is not None else ""
    return order.quiesce or said.strip().lower() in YES


def _stem(image_id: str) -> str:
    if not re.fullmatch(r"[A-Za-z0-9_-]{1,64}", image_id):  # it becomes a file name
        raise errors.server.SnapshotName(image_id=image_id)
    return f"{PREFIX}{image_id}."


def _find(folder: Folder, image_id: str) -> Path | None:
    return next((path for path in sorted(files_of(folder.path, _stem(image_id))) if path.suffix != PART), None)


def _described(path: Path, root: DiskRecord) -> DiskSnapshot:
    return DiskSnapshot(format=path.suffix.lstrip("."), size_bytes=path.stat().st_size,
                        virtual_size_bytes=root.size_bytes)


def _check_space(plan: SnapshotPlan) -> None:
    """Raise host.DiskFull if the disk's data may not fit, including the data of its backing file."""
    files = [plan.source, *([Path(plan.root.backing)] if plan.root.backing else [])]
    needed = min(plan.root.size_bytes, sum(path.stat().st_blocks * 512 for path in files if path.exists()))
    if plan.root.store != "file":
        needed = plan.root.size_bytes
    space = os.statvfs(plan.folder.path)
    if plan.format != LIVE_FORMAT:
        needed *= 2  # a live copy and its conversion exist at the same time
    if needed + SPARE_BYTES > space.f_bavail * space.f_frsize:
        raise errors.host.DiskFull(what="a snapshot", host=os.uname().nodename)
