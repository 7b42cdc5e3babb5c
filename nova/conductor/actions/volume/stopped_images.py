"""EC2 images of servers that run on volumes: the guest is off while the snapshots are made, and then runs again.

The snapshots are made with the user's own token, so that the user owns them. The token is only in memory: if a
conductor dies before all snapshots are made, its successor has no token and undoes the operation. The snapshots' name
contains the image's id, so that unrecorded snapshots are found too.

The guest is started as soon as the snapshots exist, and the image is finished after that. A complete image belongs to
its owner, and is kept even if the guest does not start.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping, Sequence

import msgspec

from nova import concurrency, context, errors
from nova.conductor import steps, volume_cleanups
from nova.conductor.actions.endings import powered
from nova.conductor.actions.volume import volume_images
from nova.conductor.engine.deps import Deps
from nova.conductor.engine.operation import Op, Result, Secrets
from nova.conductor.engine.workflow import Step, Workflow
from nova.conductor.steps.images import ACTIVE, ImageArguments, image_of, image_wanted, is_whole
from nova.db import volumes
from nova.db.server.server_row import ServerRow
from nova.db.sql.engine import Connection, DatabaseUnavailable
from nova.db.volumes import IMAGE_SNAPSHOTS, Cleanup
from nova.model.server.states import TaskState
from nova.model.volumes import AVAILABLE, CREATING, BlockDevice, NewVolumeSnapshot, VolumeSnapshot, snapshot_name

LOG = logging.getLogger(__name__)

ASKER = "asker"  # the secret with the user's own context, including the token
LOOK_S, MADE_WITHIN_S = 0.5, 900.0  # poll interval of a snapshot; how long the guest stays off for the snapshots
RETRY_S = 60  # delay before the cleanup of an unfinished operation

_START = steps.StartGuests()


def as_asker() -> Secrets:
    """Return the secret that lets the operation act as the requesting user."""
    return {ASKER: context.current()}


def of_volumes(row: ServerRow, asked: ImageArguments) -> ImageArguments:
    """Return the arguments of the operation. Raises Bug if it has no image to create."""
    if asked.image is None:
        raise errors.Bug("an image of a server's volumes is requested without a description")
    return msgspec.structs.replace(asked, image=volume_images.without_data(row, asked.image))


class StopForImage(steps.StopGuests):
    """Stop the guest. Undo: start it again; if it does not start, the host's next report shows it as stopped. Without
    the user's token the operation cannot succeed, so the guest is not stopped."""

    def do(self, deps: Deps, ops: Sequence[Op]) -> Sequence[Result]:
        if any(ASKER not in op.secrets for op in ops):
            return [errors.server.TokenLost(server=op.uuid) for op in ops]
        return super().do(deps, ops)

    def undo(self, deps: Deps, ops: Sequence[Op]) -> None:
        for op in ops:
            try:
                [result] = _START.do(deps, [op])
            except DatabaseUnavailable:
                raise
            except errors.NovaError as error:
                result = error
            if isinstance(result, errors.Overtaken):
                raise result
            if isinstance(result, errors.NovaError):
                LOG.warning("guest was stopped for an image and could not be started again: %s", result.message,
                            extra={"server": op.uuid})


class SnapshotVolumes(Step):
    """Create a snapshot of each volume and wait until all are complete. Undo: delete them. A deletion that fails is
    retried later, so that the guest need not wait."""

    uses = ("cell", "images", "journal", "volumes")
    event = "compute_snapshot_instance"

    def within(self, tx: Connection, deps: Deps, ops: Sequence[Op]) -> Mapping[str, object]:
        """Add a cleanup that finds the snapshots of an unfinished operation, however it ends."""
        volumes.add_cleanups(tx, [cleanup_of(op) for op in ops], RETRY_S)
        return {}

    def do(self, deps: Deps, ops: Sequence[Op]) -> Sequence[Result]:
        return [self._snapshot(deps, op) for op in ops]

    def _snapshot(self, deps: Deps, op: Op) -> Result:
        found = snapshots_of(deps, op)
        missing = [device for device in op.server.volumes or () if device.volume_id not in found]
        if missing and ASKER not in op.secrets:
            return errors.server.TokenLost(server=op.uuid)
        for device in missing:
            found[device.volume_id] = _create(deps, op, device)
            if not _is_ours(deps, op):
                return self._left(deps, op)
        for snapshot in found.values():
            _await(deps, snapshot)
        return {}

    @staticmethod
    def _left(deps: Deps, op: Op) -> Result:
        """Repeat the cleanup after a delete or another conductor took over: it may have run before the last snapshot
        existed."""
        deps.cell.transact(lambda tx: volumes.add_cleanups(tx, [cleanup_of(op)]))
        return errors.Overtaken(f"another operation or conductor has taken over server {op.uuid}")

    def undo(self, deps: Deps, ops: Sequence[Op]) -> None:
        volume_cleanups.run_cleanups(deps, [cleanup_of(op) for op in ops])


class FinishImage(Step):
    """Record the snapshots in the image and complete it. It gets data of length 0, else it would stay queued for
    data."""

    uses = ("images", "volumes")

    def do(self, deps: Deps, ops: Sequence[Op]) -> Sequence[Result]:
        return [self._finish(deps, op) for op in ops]

    @staticmethod
    def _finish(deps: Deps, op: Op) -> Result:
        image_id = image_of(op)
        try:
            if deps.images.show(image_id).status == ACTIVE:
                return {}
            found = snapshots_of(deps, op)
            made = [(device, found[device.volume_id]) for device in op.server.volumes or ()
                    if device.volume_id in found]
            if not made or len(made) < len(op.server.volumes or ()):
                return errors.volume.SnapshotNotFound(snapshot=snapshot_name(image_id))
            deps.images.update(image_id, {volume_images.MAPPING: volume_images.mapping(made)})
            deps.images.send(image_id, ())
        except errors.NovaError as error:
            return {} if is_whole(deps, op) else error
        return {}


def cleanup_of(op: Op) -> Cleanup:
    """Return the cleanup that removes the snapshots unless the image is complete."""
    return Cleanup(IMAGE_SNAPSHOTS, image_of(op), op.uuid)


def snapshots_of(deps: Deps, op: Op) -> dict[str, VolumeSnapshot]:
    """Return the snapshots of the operation, by their volumes."""
    return {one.volume_id: one for one in deps.volumes.find_snapshots(snapshot_name(image_of(op)))}


def _create(deps: Deps, op: Op, device: BlockDevice) -> VolumeSnapshot:
    image = image_wanted(op)
    new = NewVolumeSnapshot(volume_id=device.volume_id, name=snapshot_name(image.id), force=True,
                            description=f"snapshot for {image.name}"[:255])
    with context.entered(op.secrets[ASKER]):
        return deps.volumes.create_snapshot(new, as_user=True)


def _is_ours(deps: Deps, op: Op) -> bool:
    """True if this process still owns the operation."""
    return (deps.journal.left_s > 0 and op.entry.runner_id == deps.journal.runner_id
            and bool(deps.journal.still_mine([op.entry])))


def _await(deps: Deps, snapshot: VolumeSnapshot) -> None:
    """Wait until the snapshot is complete. Raises volume.SnapshotNotMade, and the errors of the volume client."""
    end = time.monotonic() + MADE_WITHIN_S
    while (now := deps.volumes.get_snapshot(snapshot.id)).status == CREATING and time.monotonic() < end:
        concurrency.sleep(LOOK_S)
    if now.status != AVAILABLE:
        raise errors.volume.SnapshotNotMade(snapshot=now.id, volume=now.volume_id, status=now.status)


def _closed(tx: Connection, op: Op, error: errors.NovaError | None) -> Mapping[str, object]:
    """Drop the cleanup after success: the snapshots belong to the image."""
    if error is None:
        volumes.drop_cleanups(tx, [cleanup_of(op)])
    return {}


CREATE_IMAGE_STOPPED = Workflow(
    "create_image_stopped",
    steps.HoldImage(whole_stays=True),                       # its record; undo: delete it if it is incomplete
    StopForImage(),                                          # undo: start the guest again
    SnapshotVolumes(task=TaskState.IMAGE_SNAPSHOT),          # as the user; undo: delete them
    steps.StartGuests(),
    FinishImage(task=TaskState.IMAGE_UPLOADING),             # record the snapshots in the image
    asks=ImageArguments,
    ending=powered,
    closing=_closed,
)
