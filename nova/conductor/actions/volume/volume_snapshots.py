"""Snapshots of file-backed volumes in use: the volume service has the guest's host create and merge them.

Only the host can do that, because QEMU has the files open. When the host is done, the volume service gets the progress
"90 %" and does the rest.
"""

from __future__ import annotations

import contextlib
import logging
import time
from collections.abc import Callable, Sequence

import msgspec

from nova import concurrency, errors, failures
from nova.conductor.actions.volume.volume_turns import attached_device, in_turn
from nova.conductor.actions.volume.volumes import device_of
from nova.conductor.engine.begin import begin, locked
from nova.conductor.engine.deps import Deps
from nova.conductor.engine.operation import Op, Result, VolumeOperation
from nova.conductor.engine.workflow import Step, Workflow
from nova.conductor.steps.guests import ORDERS, build_order, fence, results_of
from nova.db import volumes
from nova.db.server import states
from nova.db.server.server_row import ServerRow
from nova.db.sql.engine import Connection
from nova.model.guest.orders import Outcome, VolumeSnapshotOrder
from nova.model.server.states import VmState
from nova.model.volumes import CREATING, DELETING, NewAssistedSnapshot, OldAssistedSnapshot

LOG = logging.getLogger(__name__)

HOST_IS_DONE = "90%"
WAIT_S = 5.0  # for other operations on the server's devices
LOOK_S, LOOKS_S = 0.5, 60.0  # poll interval and timeout
RUNNING = (VmState.ACTIVE.value, VmState.PAUSED.value, VmState.RESIZED.value)


class VolumeSnapshotOperation(VolumeOperation):
    """Arguments of a snapshot operation. ``snapshot_id``: the volume service's. The files are next to the volume's own;
    see the request values."""

    snapshot_id: str = ""
    new_file: str = ""
    file_to_merge: str | None = None
    merge_target_file: str | None = None


class AssistedSnapshots:
    """The calls of ServerVolumeCalls for such snapshots. Impossible requests are 400 errors: the volume service knows
    no others."""

    def __init__(self, deps: Deps) -> None:
        self.deps = deps

    def create_assisted_snapshot(self, wanted: NewAssistedSnapshot) -> None:
        """Start to snapshot a volume. Raises volume.SnapshotNotNow."""
        self._begin("snapshot_volume", wanted.volume_id, lambda row: VolumeSnapshotOperation(
            device_id="", snapshot_id=wanted.snapshot_id, new_file=wanted.new_file))

    def delete_assisted_snapshot(self, gone: OldAssistedSnapshot) -> None:
        """Start to merge a snapshot. Raises volume.SnapshotNotNow, also if the guest must run for it and does not."""
        def arguments(row: ServerRow) -> VolumeSnapshotOperation:
            if gone.merge_target_file is not None and row.vm_state not in RUNNING:
                raise errors.volume.SnapshotNotNow(volume=gone.volume_id, reason="the guest must be running")
            return VolumeSnapshotOperation(device_id="", snapshot_id=gone.snapshot_id, file_to_merge=gone.file_to_merge,
                                           merge_target_file=gone.merge_target_file)
        self._begin("merge_volume_snapshot", gone.volume_id, arguments)

    def _begin(self, action: str, volume_id: str, arguments: Callable[[ServerRow], VolumeSnapshotOperation]
               ) -> None:
        with self.deps.cell.reading() as tx:
            holders = volumes.holders(tx, volume_id)
        if len(holders) != 1:
            raise errors.volume.SnapshotNotNow(volume=volume_id, reason=f"{len(holders)} servers have it attached")
        [uuid] = holders

        def write(tx: Connection) -> states.Entry:
            row = locked(tx, uuid)
            device = attached_device(row, volume_id, root=True)
            if not row.host:
                raise errors.volume.SnapshotNotNow(volume=volume_id, reason="its server has no host")
            return begin(self.deps, tx, action, uuid, msgspec.structs.replace(
                arguments(row), device_id=device.id, volume_id=volume_id))
        with failures.replaced((errors.WrongState, errors.Conflict),
                lambda error: errors.volume.SnapshotNotNow(volume=volume_id, reason=error.message)):
            entry = in_turn(self.deps, uuid, write, time.monotonic() + WAIT_S)
        self.deps.runner.start([entry])


Call = Callable[[str, tuple[VolumeSnapshotOrder, ...]], tuple[Outcome, ...]]


class ChangeVolumeFiles(Step):
    """Change the volume's files on the guest's host: the point of no return. Undo: report the failure to the volume
    service.

    After an error the same order is sent again, and its result shows whether the host had done it. The operation waits
    for a host that does not answer.
    """

    uses = ORDERS
    repeats_on_bug = True
    failed = "error"  # the snapshot's status after a failure

    def do(self, deps: Deps, ops: Sequence[Op]) -> Sequence[Result]:
        return [self._change(deps, op) for op in ops]

    def _change(self, deps: Deps, op: Op) -> Result:
        result = self._send(deps, op)
        if isinstance(result, errors.NovaError) and not isinstance(result, errors.Overtaken):
            result = self._send(deps, op)  # the first order may have succeeded in spite of the error
        return result if isinstance(result, errors.NovaError) else {**result, "committed": True}

    def _send(self, deps: Deps, op: Op) -> Result:
        """Send the order to the host. Raises daemon.WorkflowNotYet if it is unknown what the host has done."""
        asked, device = op.asked(VolumeSnapshotOperation), device_of(op)
        if device is None or not op.server.host:
            return errors.volume.NotAttached(server=op.uuid, volume=asked.volume_id)
        build = build_order(deps, op.server, op, fence(op))
        order = VolumeSnapshotOrder(
            server_uuid=op.uuid, instance_name=build.instance_name, fence=build.fence, build=build, device=device,
            new_file=asked.new_file, file_to_merge=asked.file_to_merge, merge_target_file=asked.merge_target_file)
        with failures.translated(errors.Unavailable,
                lambda error: errors.daemon.WorkflowNotYet(what=f"the host of the guest ({error.message})")):
            [result] = results_of([op], self.call(deps)(op.server.host, (order,)))
        return result if isinstance(result, errors.NovaError) else {**result, "host": op.server.host}

    def call(self, deps: Deps) -> Call:
        """Return the host call of the order."""
        raise NotImplementedError

    def undo(self, deps: Deps, ops: Sequence[Op]) -> None:
        for op in ops:
            snapshot = op.asked(VolumeSnapshotOperation).snapshot_id
            with failures.best_effort(LOG, "failure of snapshot %s not reported to the volume service: %s", snapshot,
                    extra={"server": op.uuid}):  # the volume service has a timeout
                deps.volumes.set_snapshot_status(snapshot, self.failed)


class SnapshotVolume(ChangeVolumeFiles):
    """Let the guest write to the new file."""

    event = "compute_snapshot_volume"

    def call(self, deps: Deps) -> Call:
        return deps.compute.snapshot_volumes


class MergeVolumeSnapshot(ChangeVolumeFiles):
    """Remove the merged file from the guest's disk chain."""

    event = "compute_merge_volume_snapshot"
    failed = "error_deleting"

    def call(self, deps: Deps) -> Call:
        return deps.compute.merge_volume_snapshots


class TellVolumeService(Step):
    """Report to the volume service that the host is done, and wait for its part of the work.

    Only the volume service knows which file the volume is, so no other operation may start before that.
    """

    uses = ("volumes",)
    ignores_errors = True
    status = CREATING  # the snapshot's status meanwhile

    def do(self, deps: Deps, ops: Sequence[Op]) -> Sequence[Result]:
        for op in ops:
            self._tell(deps, op.asked(VolumeSnapshotOperation).snapshot_id)
        return [{} for _ in ops]

    def _tell(self, deps: Deps, snapshot: str) -> None:
        with contextlib.suppress(errors.NotFound, errors.Invalid):  # it has timed out, or knows it already
            deps.volumes.set_snapshot_status(snapshot, self.status, HOST_IS_DONE)
            end = time.monotonic() + LOOKS_S
            while deps.volumes.get_snapshot(snapshot).status == self.status and time.monotonic() < end:
                concurrency.sleep(LOOK_S)


class TellOfMerge(TellVolumeService):
    """Report the merge of a snapshot that is being deleted."""

    status = DELETING


SNAPSHOT_VOLUME = Workflow("snapshot_volume", SnapshotVolume(), TellVolumeService(), asks=VolumeSnapshotOperation)

MERGE_VOLUME_SNAPSHOT = Workflow("merge_volume_snapshot", MergeVolumeSnapshot(), TellOfMerge(),
                                 asks=VolumeSnapshotOperation)
