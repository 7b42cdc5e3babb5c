"""EC2's image of a server that runs on volumes: the guest is off while their snapshots are made, and runs again.

The snapshots are made with the user's own token, so that they are theirs. It is in memory alone: whoever takes over
from a conductor that died before all of them were made has none, and takes back what there is. The snapshots' name has
the image's id, so that those are found which nobody wrote down.

The guest is started as soon as the snapshots are there, and the image is finished after that: an image that is whole is
its owner's, and nobody takes it back for a guest that does not start.
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
from nova.db.sql.engine import Connection, DatabaseAway
from nova.db.sql.types import AnyColumn
from nova.db.volumes import IMAGE_SNAPSHOTS, Cleanup
from nova.model.server.states import TaskState
from nova.model.volumes import AVAILABLE, CREATING, BlockDevice, NewVolumeSnapshot, VolumeSnapshot, snapshot_name

LOG = logging.getLogger(__name__)

ASKER = "asker"  # the secret that is the user's own context, with the token
LOOK_S, MADE_WITHIN_S = 0.5, 900.0  # between two looks at a snapshot; how long the guest stays off for them
RETRY_S = 60  # after which others look for what an operation left

_START = steps.StartGuests()


def as_asker() -> Secrets:
    """What lets the operation act as who asks for it now."""
    return {ASKER: context.current()}


def of_volumes(row: ServerRow, asked: ImageArguments) -> ImageArguments:
    """What the operation is begun with. Bug: it makes no image."""
    if asked.image is None:
        raise errors.Bug("an image of a server's volumes is asked for, and none is described")
    return msgspec.structs.replace(asked, image=volume_images.without_data(row, asked.image))


class StopForImage(steps.StopGuests):
    """The guest is off. Undo: it is started again; where it does not start, its owner sees it stopped with the host's
    next report. Without the user's token nothing would come of it: the guest is left alone."""

    def do(self, deps: Deps, ops: Sequence[Op]) -> Sequence[Result]:
        if any(ASKER not in op.secrets for op in ops):
            return [errors.server.TokenLost(server=op.uuid) for op in ops]
        return super().do(deps, ops)

    def undo(self, deps: Deps, ops: Sequence[Op]) -> None:
        for op in ops:
            try:
                [result] = _START.do(deps, [op])
            except DatabaseAway:
                raise
            except errors.NovaError as error:
                result = error
            if isinstance(result, errors.Overtaken):
                raise result
            if isinstance(result, errors.NovaError):
                LOG.warning("a guest that was off for an image is not started again: %s", result.message,
                            extra={"server": op.uuid})


class SnapshotVolumes(Step):
    """There is a snapshot of each volume, and it is whole. Undo: they are deleted; what the volume service does not do
    at once it is asked for again later, so that the guest need not wait."""

    uses = ("cell", "images", "journal", "volumes")
    event = "compute_snapshot_instance"

    def within(self, tx: Connection, deps: Deps, ops: Sequence[Op]) -> Mapping[str, AnyColumn]:
        """Whatever becomes of the operation: snapshots that came to nothing are found."""
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
        """A delete, or another runner, came: it may have looked for snapshots before the last one was there."""
        deps.cell.transact(lambda tx: volumes.add_cleanups(tx, [cleanup_of(op)]))
        return errors.Overtaken(f"another operation, or runner, has server {op.uuid}")

    def undo(self, deps: Deps, ops: Sequence[Op]) -> None:
        volume_cleanups.pay(deps, [cleanup_of(op) for op in ops])


class FinishImage(Step):
    """The image names the snapshots, and is whole. It has no data: of no length, else it would wait for some."""

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
    """What removes the snapshots, unless the image is whole."""
    return Cleanup(IMAGE_SNAPSHOTS, image_of(op), op.uuid)


def snapshots_of(deps: Deps, op: Op) -> dict[str, VolumeSnapshot]:
    """Those that the operation made, by their volumes."""
    return {one.volume_id: one for one in deps.volumes.find_snapshots(snapshot_name(image_of(op)))}


def _create(deps: Deps, op: Op, device: BlockDevice) -> VolumeSnapshot:
    image = image_wanted(op)
    new = NewVolumeSnapshot(volume_id=device.volume_id, name=snapshot_name(image.id), force=True,
                            description=f"snapshot for {image.name}"[:255])
    with context.entered(op.secrets[ASKER]):
        return deps.volumes.create_snapshot(new, as_user=True)


def _is_ours(deps: Deps, op: Op) -> bool:
    """Whether this runner still has the server."""
    return (deps.journal.left_s > 0 and op.entry.runner_id == deps.journal.runner_id
            and bool(deps.journal.still_mine([op.entry])))


def _await(deps: Deps, snapshot: VolumeSnapshot) -> None:
    """volume.SnapshotNotMade; errors of the client."""
    end = time.monotonic() + MADE_WITHIN_S
    while (now := deps.volumes.get_snapshot(snapshot.id)).status == CREATING and time.monotonic() < end:
        concurrency.sleep(LOOK_S)
    if now.status != AVAILABLE:
        raise errors.volume.SnapshotNotMade(snapshot=now.id, volume=now.volume_id, status=now.status)


def _closed(tx: Connection, op: Op, error: errors.NovaError | None) -> Mapping[str, object]:
    """The snapshots are the image's."""
    if error is None:
        volumes.drop_cleanups(tx, [cleanup_of(op)])
    return {}


CREATE_IMAGE_STOPPED = Workflow(
    "create_image_stopped",
    steps.HoldImage(whole_stays=True),                       # its record; undo: delete it, if it is not whole
    StopForImage(),                                          # undo: start the guest again
    SnapshotVolumes(task=TaskState.IMAGE_SNAPSHOT),          # as the user; undo: delete them
    steps.StartGuests(),
    FinishImage(task=TaskState.IMAGE_UPLOADING),             # the image names the snapshots
    asks=ImageArguments,
    ending=powered,
    closing=_closed,
)
