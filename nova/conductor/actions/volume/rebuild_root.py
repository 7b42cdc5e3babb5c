"""Rebuild a server that boots from a volume: the volume service writes the image over the root volume.

Meanwhile the guest is off and has no root disk, and the volume is reserved for the server. The reservation is made
before the host's attachment is removed, so that the volume is never free. Until the volume service has accepted the
image, everything can be undone. After that the volume's old data are gone: a failure leaves the server in ERROR, to be
rebuilt again.
"""

from __future__ import annotations

import contextlib
import datetime
import logging
import uuid
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from nova import errors, failures
from nova.conductor.actions.volume.volumes import VolumeOrderStep
from nova.conductor.engine.deps import Deps
from nova.conductor.engine.operation import Arguments, Op, Result, VolumeOperation
from nova.conductor.engine.workflow import Step
from nova.conductor.reimages import FAILED
from nova.conductor.steps.guests import StopGuests, fence, guest_order
from nova.conductor.steps.volumes import (
    AT_ONCE_S,
    LOOK_S,
    VolumeStep,
    connect,
    connected,
    devices,
    replace_reservations,
)
from nova.db.server.server_row import ServerRow
from nova.model.base import utcnow
from nova.model.image.images import Image
from nova.model.server.server_orders import RebuildServer
from nova.model.server.states import TaskState, VmState
from nova.model.volumes import DOWNLOADING, ERROR, IN_USE, RESERVED, BlockDevice, Volume, root_of

LOG = logging.getLogger(__name__)

GIB = 1024**3

REIMAGE = "reimage"  # argument that the steps depend on


class RootReimage(Arguments):
    """Arguments of a rebuild of a server that boots from a volume.

    ``reimage``: the image to write to its root volume, the volume of device ``device_id``; None: keep the volume's
    contents. ``image_gb``: the amount of data to write, in GiB.
    """

    reimage: str | None = None
    device_id: str = ""
    image_gb: int = 1


# -- checks on the request

class RootRebuild(NamedTuple):
    """A root volume for which the rebuild is allowed. ``other_image``: the server gets a different image;
    ``arguments``: for :class:`RootReimage`."""

    other_image: bool
    arguments: Mapping[str, Any]


def check(deps: Deps, row: ServerRow, order: RebuildServer, image: Image) -> RootRebuild | None:
    """Check the rebuild of a server that boots from a volume; return None if it boots from a disk of its host.

    Raises volume.RebuildSameImage if, below microversion 2.93, the image differs from the root volume's;
    RebuildKeepsNone, RebuildMultiattach, RebuildSnapshotFile, NotInUse; errors of the volume service.
    """
    root = root_of(row.volumes or ())
    if root is None:
        return None
    if order.preserve_ephemeral:
        raise errors.volume.RebuildKeepsNone()
    found = {one.id: deps.volumes.get(one.volume_id, as_user=True) for one in row.volumes or ()}
    same = found[root.id].image_metadata.get("image_id") == image.id
    if not (order.reimage or same):
        raise errors.volume.RebuildSameImage(image_id=image.id)
    if order.reimage and root.multiattach:
        raise errors.volume.RebuildMultiattach(volume=root.volume_id)
    for device in row.volumes or ():
        # a volume left by a failed rebuild is reserved or in error, and can be rebuilt again
        again = order.reimage and device.id == root.id
        check_in_use(found[device.id], (RESERVED, ERROR) if again else ())
    if not order.reimage:
        return RootRebuild(False, {})
    check_file(deps, root)
    return RootRebuild(not same, {"reimage": image.id, "device_id": root.id, "image_gb": _image_gb(image, root)})


def check_in_use(volume: Volume, others: Sequence[str] = ()) -> None:
    """Raise volume.NotInUse if the volume is in any other status: another operation is using it."""
    if volume.status not in (IN_USE, *others):
        raise errors.volume.NotInUse(volume=volume.id, status=volume.status)


def check_file(deps: Deps, root: BlockDevice) -> None:
    """Raise volume.RebuildSnapshotFile if the guest reads another file than the volume service writes to."""
    connection = None
    with contextlib.suppress(errors.NotFound):  # already deleted, by an earlier run of this step
        connection = deps.volumes.get_attachment(root.attachment_id).connection if root.attachment_id else None
    if connection is None or connection.kind != "nfs":
        return
    file = str(connection.data.get("name", ""))
    if _snapshot_of(file) not in ("", root.volume_id):
        raise errors.volume.RebuildSnapshotFile(volume=root.volume_id, file=file)


def _snapshot_of(file: str) -> str:
    """Return the id of the snapshot that a volume's file was created for, or "". The volume service names such a file
    VOLUME_FILE.SNAPSHOT_ID."""
    suffix = file.rpartition(".")[2]
    with contextlib.suppress(ValueError):
        return str(uuid.UUID(suffix))
    return ""


def _image_gb(image: Image, root: BlockDevice) -> int:
    """Return the GiB to write. An image of a server's volumes has no size of its own: the volume's size counts."""
    return -(-image.size_bytes // GIB) or root.size_gb or 1


# -- steps

def overwritten(op: Op) -> bool:
    """True if the root volume may hold the new image or a part of it, so that the rebuild cannot be undone."""
    return not op.progress.root_kept and any(event.step == ReimageRoot.__name__ for event in op.entry.history)


def _root(op: Op) -> BlockDevice:
    wanted = op.asked(VolumeOperation).device_id
    found = next((one for one in devices(op) if one.id == wanted), None)
    if found is None:
        raise errors.Bug(f"'{op.entry.action}' finds no root volume")
    return found


class StopForReimage(StopGuests):
    """Stop the guest. Undo: start it again if it ran."""

    def undo(self, deps: Deps, ops: Sequence[Op]) -> None:
        for op in ops:
            order = guest_order(deps, op, fence(op))
            if order.build is None or op.server.vm_state != VmState.ACTIVE.value or overwritten(op):
                continue
            with failures.best_effort(LOG, "rebuild failed and the guest could not be started again: %s",
                    but=errors.Overtaken, extra={"server": op.uuid}):  # the host's next report shows it as stopped
                order = msgspec.structs.replace(order, build=connected(deps, op, order.build))
                deps.compute.start_guests(op.server.host or "", (order,))


class UnplugRoot(VolumeOrderStep):
    """Detach the root volume from the guest on its host. Undo: attach it again."""

    def do(self, deps: Deps, ops: Sequence[Op]) -> Sequence[Result]:
        return [self._unplug(deps, op) for op in ops]

    def _unplug(self, deps: Deps, op: Op) -> Result:
        result = self.plug(deps, op, plugged=False)
        return {} if isinstance(result, errors.NotFound) else result  # an earlier failure left no guest

    def undo(self, deps: Deps, ops: Sequence[Op]) -> None:
        for op in ops:
            if overwritten(op):
                continue
            result = self.plug(deps, op, plugged=True)
            if isinstance(result, errors.NovaError) and not isinstance(result, errors.NotFound):
                raise result


class ReserveRoot(VolumeStep):
    """Reserve the root volume for the server and disconnect its host. Undo: connect the host again."""

    def act(self, deps: Deps, op: Op) -> None:
        root = _root(op)
        check_file(deps, root)  # a snapshot may have been made since the request
        replace_reservations(deps, op, lambda one: one.id == root.id)

    def undo(self, deps: Deps, ops: Sequence[Op]) -> None:
        for op in ops:
            if not overwritten(op):
                connect(deps, op, _root(op))


class ReimageRoot(Step):
    """Order the volume service to write the image. A refusal leaves the volume unchanged."""

    uses = ("volumes",)

    def do(self, deps: Deps, ops: Sequence[Op]) -> Sequence[Result]:
        return [self._begin(deps, op) for op in ops]

    @staticmethod
    def _begin(deps: Deps, op: Op) -> Result:
        """Start to write the image. (A repeated step finds it in progress; an image that is already written is written
        again, without effect.)"""
        volume_id = _root(op).volume_id
        try:
            if deps.volumes.get(volume_id).status != DOWNLOADING:
                deps.volumes.reimage(volume_id, str(op.asked(RootReimage).reimage))
        except errors.Unavailable as error:  # it is unknown whether the write has started
            return error
        except errors.NovaError as error:
            op.note(root_kept=True)
            return error
        return {}


class AwaitReimage(Step):
    """Wait until the image is on the volume, by the volume service's notification or by the volume's status."""

    uses = ("reimages", "settings", "volumes")

    def do(self, deps: Deps, ops: Sequence[Op]) -> Sequence[Result]:
        return [self._await(deps, op) for op in ops]

    def _await(self, deps: Deps, op: Op) -> Result:
        root, asked = _root(op), op.asked(RootReimage)
        seconds = deps.settings.reimage_timeout_per_gb * asked.image_gb
        with deps.reimages.expected(root.volume_id):
            end = utcnow() + datetime.timedelta(seconds=AT_ONCE_S)
            said = ""
            while (status := _status(deps, root.volume_id)) == DOWNLOADING and said != FAILED:
                if waited_s(op) > seconds:
                    return errors.volume.ReimageSlow(volume=root.volume_id, image_id=asked.reimage, seconds=seconds)
                if utcnow() > end:
                    raise errors.daemon.WorkflowNotYet(what=f"volume {root.volume_id}, which is {status}")
                said = deps.reimages.wait(root.volume_id, LOOK_S)
        if status != RESERVED or said == FAILED:
            return errors.volume.NotReimaged(volume=root.volume_id, image_id=asked.reimage, status=status)
        return {}


def _status(deps: Deps, volume_id: str) -> str:
    """Return the volume's status; DOWNLOADING while the volume service does not answer."""
    with failures.best_effort(LOG, "cannot check whether volume %s has its image yet: %s", volume_id,
            on=errors.Unavailable):
        return deps.volumes.get(volume_id).status
    return DOWNLOADING


def waited_s(op: Op) -> float:
    """Return the seconds since the volume service was ordered to write."""
    begun = next((event.started_at for event in op.entry.history if event.step == ReimageRoot.__name__), utcnow())
    return (utcnow() - begun).total_seconds()


class ConnectRoot(VolumeStep):
    """Connect the server's host to the volume, which is in use again."""

    def act(self, deps: Deps, op: Op) -> None:
        connect(deps, op, _root(op))


def steps() -> tuple[Step, ...]:
    """Return the steps that are skipped if the root is not a volume, or keeps its contents."""
    return (StopForReimage(task=TaskState.REBUILD_BLOCK_DEVICE_MAPPING, event="", when=REIMAGE),
            UnplugRoot(when=REIMAGE),
            ReserveRoot(when=REIMAGE),
            ReimageRoot(when=REIMAGE),
            AwaitReimage(when=REIMAGE),
            ConnectRoot(when=REIMAGE))


__all__ = ["RootRebuild", "RootReimage", "check", "check_in_use", "overwritten", "steps"]
