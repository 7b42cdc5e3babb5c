"""A rebuild of a server that boots from a volume: the volume service writes the image over the root volume.

Meanwhile the guest is off and has no root disk, and the volume is reserved for the server: a reservation is made before
the host's attachment goes, so that it is free at no moment. Until the volume service has accepted the image, all of it
is taken back. After that the volume's old data are gone: what fails leaves the server in ERROR, to be rebuilt again.
"""

from __future__ import annotations

import contextlib
import datetime
import logging
import uuid
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import msgspec

from nova import errors
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
    reserve_anew,
)
from nova.db.server.server_row import ServerRow
from nova.db.sql.types import AnyColumn
from nova.model.base import utcnow
from nova.model.image.images import Image
from nova.model.server.server_orders import RebuildServer
from nova.model.server.states import TaskState, VmState
from nova.model.volumes import DOWNLOADING, ERROR, IN_USE, RESERVED, BlockDevice, Volume, root_of

LOG = logging.getLogger(__name__)

GIB = 1024**3

REIMAGE = "reimage"  # the argument that its steps depend on


class RootReimage(Arguments):
    """What a rebuild of a server that boots from a volume is begun with. ``reimage``: the image that its root volume,
    which is that of device ``device_id``, is to have; None: the volume stays as it is. ``image_gb``: how much that
    writes."""

    reimage: str | None = None
    device_id: str = ""
    image_gb: int = 1


# -- its admission

class RootRebuild(NamedTuple):
    """A root volume that may be rebuilt as it is asked. ``other_image``: the server becomes another one than it was;
    ``arguments``: of :class:`RootReimage`."""

    other_image: bool
    arguments: Mapping[str, AnyColumn]


def check(deps: Deps, row: ServerRow, order: RebuildServer, image: Image) -> RootRebuild | None:
    """None: the server boots from a disk of its host. volume.RebuildSameImage: below 2.93 with another image than the
    root volume was made of; RebuildKeepsNone, RebuildMultiattach, RebuildSnapshotFile, NotInUse; errors of the volume
    service."""
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
        # what a failed rebuild left is reserved, or in error: it is rebuilt again
        again = order.reimage and device.id == root.id
        check_in_use(found[device.id], (RESERVED, ERROR) if again else ())
    if not order.reimage:
        return RootRebuild(False, {})
    check_file(deps, root)
    return RootRebuild(not same, {"reimage": image.id, "device_id": root.id, "image_gb": _image_gb(image, root)})


def check_in_use(volume: Volume, others: Sequence[str] = ()) -> None:
    """volume.NotInUse: something else is being done with it."""
    if volume.status not in (IN_USE, *others):
        raise errors.volume.NotInUse(volume=volume.id, status=volume.status)


def check_file(deps: Deps, root: BlockDevice) -> None:
    """volume.RebuildSnapshotFile: the file that the guest reads is not the one that the volume service writes to."""
    connection = None
    with contextlib.suppress(errors.NotFound):  # it was given back already, by a step that is done again
        connection = deps.volumes.get_attachment(root.attachment_id).connection if root.attachment_id else None
    if connection is None or connection.kind != "nfs":
        return
    file = str(connection.data.get("name", ""))
    if _snapshot_of(file) not in ("", root.volume_id):
        raise errors.volume.RebuildSnapshotFile(volume=root.volume_id, file=file)


def _snapshot_of(file: str) -> str:
    """The id of the snapshot that a volume's file was made for; the volume service names it VOLUME_FILE.SNAPSHOT_ID."""
    suffix = file.rpartition(".")[2]
    try:
        return str(uuid.UUID(suffix))
    except ValueError:
        return ""


def _image_gb(image: Image, root: BlockDevice) -> int:
    """GiB that are written; an image of a server on volumes has no size of its own: as much as the volume holds."""
    return -(-image.size_bytes // GIB) or root.size_gb or 1


# -- its steps

def overwritten(op: Op) -> bool:
    """Whether the root volume may hold the new image, or a part of it: there is no way back then."""
    return not op.progress.root_kept and any(event.step == ReimageRoot.__name__ for event in op.entry.history)


def _root(op: Op) -> BlockDevice:
    wanted = op.asked(VolumeOperation).device_id
    found = next((one for one in devices(op) if one.id == wanted), None)
    if found is None:
        raise errors.Bug(f"'{op.entry.action}' has lost its root volume")
    return found


class StopForReimage(StopGuests):
    """Off. Undo: what ran is started again."""

    def undo(self, deps: Deps, ops: Sequence[Op]) -> None:
        for op in ops:
            order = guest_order(deps, op, fence(op))
            if order.build is None or op.server.vm_state != VmState.ACTIVE.value or overwritten(op):
                continue
            try:
                order = msgspec.structs.replace(order, build=connected(deps, op, order.build))
                deps.compute.start_guests(op.server.host or "", (order,))
            except errors.Overtaken:
                raise
            except errors.NovaError as error:  # its owner sees it stopped with the host's next report
                LOG.warning("a guest that could not be rebuilt is not started again: %s", error.message,
                            extra={"server": op.uuid})


class UnplugRoot(VolumeOrderStep):
    """Its host lets go of the root volume. Undo: the guest has it again."""

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
    """The root volume is the server's, and no host's. Undo: its host may use it."""

    def act(self, deps: Deps, op: Op) -> None:
        root = _root(op)
        check_file(deps, root)  # a snapshot may have been made since the request
        reserve_anew(deps, op, lambda one: one.id == root.id)

    def undo(self, deps: Deps, ops: Sequence[Op]) -> None:
        for op in ops:
            if not overwritten(op):
                connect(deps, op, _root(op))


class ReimageRoot(Step):
    """The volume service has begun to write the image. What it refuses leaves the volume as it was."""

    uses = ("volumes",)

    def do(self, deps: Deps, ops: Sequence[Op]) -> Sequence[Result]:
        return [self._begin(deps, op) for op in ops]

    @staticmethod
    def _begin(deps: Deps, op: Op) -> Result:
        """(Done again, it finds it begun; one that has ended meanwhile is written once more, which changes nothing.)"""
        volume_id = _root(op).volume_id
        try:
            if deps.volumes.get(volume_id).status != DOWNLOADING:
                deps.volumes.reimage(volume_id, str(op.asked(RootReimage).reimage))
        except errors.Unavailable as error:  # nobody knows whether it has begun
            return error
        except errors.NovaError as error:
            op.note(root_kept=True)
            return error
        return {}


class AwaitReimage(Step):
    """The image is on the volume: the volume service has said so, or the volume's status does."""

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
    """A volume service that does not answer for a while is still at it, as far as anybody knows."""
    try:
        return deps.volumes.get(volume_id).status
    except errors.Unavailable as error:
        LOG.warning("whether volume %s has its image yet cannot be asked: %s", volume_id, error.message)
        return DOWNLOADING


def waited_s(op: Op) -> float:
    """Seconds since the volume service was asked to write."""
    begun = next((event.started_at for event in op.entry.history if event.step == ReimageRoot.__name__), utcnow())
    return (utcnow() - begun).total_seconds()


class ConnectRoot(VolumeStep):
    """The server's host may use the volume, which is in use again."""

    def act(self, deps: Deps, op: Op) -> None:
        connect(deps, op, _root(op))


def steps() -> tuple[Step, ...]:
    """The part of a rebuild that is left out where the root is no volume, or stays as it is."""
    return (StopForReimage(task=TaskState.REBUILD_BLOCK_DEVICE_MAPPING, event="", when=REIMAGE),
            UnplugRoot(when=REIMAGE),
            ReserveRoot(when=REIMAGE),
            ReimageRoot(when=REIMAGE),
            AwaitReimage(when=REIMAGE),
            ConnectRoot(when=REIMAGE))


__all__ = ["RootRebuild", "RootReimage", "check", "check_in_use", "overwritten", "steps"]
