"""Images of servers: snapshots on the host, uploads, and the removal of unfinished images.

The image's record is created at the request with the user's token, so that the user owns it. Later changes to it use
nova's own credentials.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Mapping, Sequence

import msgspec

from nova import errors, failures
from nova.clients.glance import BASE_KEYS, TAKING
from nova.conductor.engine.deps import Deps
from nova.conductor.engine.operation import Arguments, Op, Result
from nova.conductor.engine.workflow import Step
from nova.conductor.steps.guests import ORDERS, build_order, fence, results_of
from nova.db.host import host_cleanups
from nova.db.sql.engine import Connection
from nova.model.guest.orders import DiskSnapshot, Outcome, SnapshotOrder
from nova.model.image.images import Image, NewImage
from nova.model.server.states import TaskState

LOG = logging.getLogger(__name__)

GIB = 1024 ** 3

BARE = "bare"

ACTIVE, QUEUED = "active", "queued"

YES = ("true", "1", "yes", "on", "t", "y")


class ImageArguments(Arguments):
    """Arguments of an operation that creates an image of a server. None: a backup of which none is kept."""

    snapshot_image_id: str | None = None
    image: NewImage | None = None


class HoldImage(Step):
    """Ensure that the image's record exists. Undo: delete it, unless it has data and ``whole_stays`` keeps it for its
    owner."""

    uses = ("images",)

    def __init__(self, task: TaskState | None = None, *, when: str | None = None, whole_stays: bool = False) -> None:
        super().__init__(task, when=when)
        self.whole_stays = whole_stays

    def do(self, deps: Deps, ops: Sequence[Op]) -> Sequence[Result]:
        return [self._hold(deps, op) for op in ops]

    def _hold(self, deps: Deps, op: Op) -> Result:
        if op.secrets.get("image_made"):
            return {}
        wanted = image_wanted(op)
        try:
            deps.images.show(wanted.id)
        except errors.NotFound:
            # The conductor died before it could create the record: the user's token is gone, but the owner is known.
            # The right to set an image's own members (visibility, protected) in its metadata can no longer be checked.
            own = {name: value for name, value in wanted.properties.items() if name not in BASE_KEYS}
            deps.images.create(msgspec.structs.replace(wanted, owner=op.server.project_id, properties=own))
        return {}

    def undo(self, deps: Deps, ops: Sequence[Op]) -> None:
        for op in ops:
            if not offloading(op):
                discard(deps, image_of(op), self.whole_stays)


class TakeSnapshots(Step):
    """Take snapshots of the guests' root disks on their host. Undo: delete them."""

    uses = (*ORDERS, "images", "journal")

    def do(self, deps: Deps, ops: Sequence[Op]) -> Sequence[Result]:
        host = ops[0].server.host
        if not host:
            return [errors.server.NoHost(server=op.uuid) for op in ops]
        outcomes = deps.compute.snapshot_guests(host, tuple(snapshot_order(deps, op) for op in ops))
        by_uuid = {outcome.server_uuid: outcome for outcome in outcomes}
        return [result if isinstance(result, errors.NovaError) else _kept(op, host, by_uuid[op.uuid])
                for op, result in zip(ops, results_of(ops, outcomes), strict=True)]

    def undo(self, deps: Deps, ops: Sequence[Op]) -> None:
        for op in ops:
            in_ceph = op.progress.snapshot is not None and op.progress.snapshot.in_ceph
            _forget(deps, op, image_of(op), in_ceph and data_given(deps, image_of(op)))


def data_given(deps: Deps, image_id: str) -> bool:
    """True if the image has, or is getting, its data where a host wrote them: then they belong to the image service.

    True also while the image service does not answer: to remove an image's data would be worse than to leave some.
    """
    try:
        image: Image = deps.images.show(image_id)
    except errors.NotFound:
        return False
    except errors.NovaError as error:
        LOG.warning("cannot check image %s: its snapshot in Ceph may be left there: %s", image_id, error.message)
        return True
    return image.status != QUEUED or TAKING in image.properties


def _forget(deps: Deps, op: Op, image_id: str, given: bool) -> None:
    """Order the host to delete the snapshot, except data ``given`` to the image service. A failure becomes a pending
    cleanup and does not delay the server."""
    if not op.server.host:
        return
    order = msgspec.structs.replace(snapshot_order(deps, op, image_id), given=given)
    try:
        [result] = results_of([op], deps.compute.drop_snapshots(op.server.host, (order,)))
    except errors.Overtaken:
        raise
    except errors.NovaError as error:
        result = error
    if isinstance(result, errors.NovaError):
        _leave_dropping(deps, op, order, result)


def _leave_dropping(deps: Deps, op: Op, order: SnapshotOrder, why: errors.NovaError) -> None:
    """Write a pending cleanup of the host for this snapshot, added to the snapshots of an earlier one."""
    LOG.warning("host %s could not delete a snapshot; the cleanup is pending: %s", op.server.host, why.message,
                extra={"server": op.uuid})

    def write(tx: Connection) -> None:
        older: Mapping[str, str] = next((
            cleanup.arguments for cleanup in host_cleanups.pending(tx, op.server.host)
            if (cleanup.server_uuid, cleanup.step) == (op.uuid, host_cleanups.SNAPSHOTS)), {})
        given = {"given": [order.image_id]} if order.given else {}
        lists = {name: " ".join(dict.fromkeys([*older.get(name, "").split(), *more]))
                 for name, more in {"image_id": [order.image_id], "given": [], **given}.items()}
        host_cleanups.add(tx, [{"host": op.server.host, "server_uuid": op.uuid, "epoch": op.entry.epoch,
                                    "step": host_cleanups.SNAPSHOTS,
                                    "arguments": {name: text for name, text in lists.items() if text}}])
    op.entry = deps.journal.fence_unreachable_host(op.entry, write)


def _kept(op: Op, host: str, outcome: Outcome) -> Result:
    if outcome.snapshot is None:
        return errors.image.NothingKept(server=op.uuid)
    return {"snapshot": outcome.snapshot, "host": host}


class UploadSnapshots(Step):
    """Order the host to upload the snapshot and delete it. An image that already has its data is complete; the host
    then deletes the snapshot again, because it may not have done so."""

    uses = (*ORDERS, "images", "journal")

    def do(self, deps: Deps, ops: Sequence[Op]) -> Sequence[Result]:
        return [self._upload(deps, op) for op in ops]

    def _upload(self, deps: Deps, op: Op) -> Result:
        try:
            image: Image = deps.images.show(image_of(op))
            if image.status == ACTIVE:
                return self._sent_before(deps, op)
            deps.images.update(image.id, _members(image, _snapshot(op)))
            if not op.server.host:
                return errors.server.NoHost(server=op.uuid)
            outcomes = deps.compute.upload_snapshots(op.server.host, (snapshot_order(deps, op),))
            return _without_power(results_of([op], outcomes)[0])
        except errors.Overtaken:
            raise
        except errors.NovaError as error:
            return self._sent_before(deps, op) if is_whole(deps, op) else error

    @staticmethod
    def _sent_before(deps: Deps, op: Op) -> Result:
        _forget(deps, op, image_of(op), given=True)
        return {}


def _without_power(result: Result) -> Result:
    """Return the result without a power state: an upload does not report one."""
    return result if isinstance(result, errors.NovaError) else {}


def _members(image: Image, snapshot: DiskSnapshot) -> Mapping[str, object]:
    """Return the image's attributes that are known from its file. A disk must be at least as large as the file's
    content."""
    least = -(-snapshot.virtual_size_bytes // GIB)
    return {"disk_format": snapshot.format, "container_format": image.container_format or BARE,
            "min_disk": max(image.min_disk_gb, least)}


def is_whole(deps: Deps, op: Op) -> bool:
    """True if the image has its data in spite of an error: the reply may have been lost."""
    with contextlib.suppress(errors.NovaError):
        return bool(deps.images.show(image_of(op)).status == ACTIVE)
    return False


class DropImages(Step):
    """Delete a deleted server's images: its shelved disk and incomplete images. Data that its host stored in the image
    service's storage are deleted by the host, unless an image uses them."""

    uses = (*ORDERS, "images", "journal")
    pure, ignores_errors = True, True  # may be repeated, and is never undone

    def do(self, deps: Deps, ops: Sequence[Op]) -> Sequence[Result]:
        for op in ops:
            memo = op.server.memo
            if memo is not None and memo.shelved_image_id:
                discard(deps, memo.shelved_image_id)
            for left in op.asked(Arguments).images:
                given = data_given(deps, left.image_id)
                discard(deps, left.image_id, left.whole_stays)
                if not given:
                    _forget(deps, op, left.image_id, given)
        return [{} for _ in ops]


def offloading(op: Op) -> bool:
    """True if the operation has reached the offload of the guest: from there on, only the image has its disk."""
    return any(event.step == "OffloadGuests" for event in op.entry.history)


def image_wanted(op: Op) -> NewImage:
    """Return the image that the operation creates. Raises Bug if it creates none."""
    wanted = op.asked(ImageArguments).image
    if wanted is None:
        raise errors.Bug(f"'{op.entry.action}' creates no image")
    return wanted


def _snapshot(op: Op) -> DiskSnapshot:
    found = op.progress.snapshot
    if found is None:
        raise errors.Bug(f"'{op.entry.action}' has taken no snapshot")
    return found


def image_of(op: Op) -> str:
    """Return the id of the image that the operation creates."""
    return image_wanted(op).id


def snapshot_order(deps: Deps, op: Op, image_id: str = "") -> SnapshotOrder:
    """Return the snapshot order; the guest is quiesced if its image sets ``os_require_quiesce``. The default
    ``image_id`` is the image that the operation creates. Raises Bug if it creates none."""
    build = build_order(deps, op.server, op, fence(op))
    properties = op.server.image.properties if op.server.image else {}
    quiesce = properties.get("os_require_quiesce", "").lower() in YES
    return SnapshotOrder(server_uuid=op.uuid, instance_name=build.instance_name, fence=build.fence, build=build,
                         image_id=image_id or image_of(op), quiesce=quiesce)


def discard(deps: Deps, image_id: str, whole_stays: bool = False) -> None:
    """Delete an image. If it cannot be deleted (the service is down, the owner protects it) it is left with a warning:
    no server waits for it."""
    with failures.best_effort(LOG, "image %s could not be deleted at the image service: %s", image_id), \
            contextlib.suppress(errors.NotFound):
        if whole_stays and deps.images.show(image_id).status == ACTIVE:
            return
        deps.images.delete(image_id)
