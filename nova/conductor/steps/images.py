"""Images made of servers: kept on the host, uploaded; and removed when nothing comes of them.

The record is made at the door as its user, so that it is theirs; whatever happens to it later happens with the
service's own credentials.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence

import msgspec

from nova import errors
from nova.clients.glance import BASE_KEYS, TAKING
from nova.conductor.engine.deps import Deps
from nova.conductor.engine.operation import Arguments, Op, Result
from nova.conductor.engine.workflow import Step
from nova.conductor.steps.guests import ORDERS, build_order, fence, results_of
from nova.db.host import services
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
    """What an operation that makes an image of a server is begun with. None: a backup of which none is kept."""

    snapshot_image_id: str | None = None
    image: NewImage | None = None


class HoldImage(Step):
    """The image's record is there. Undo: it goes, unless it has its data and stays for its owner (``whole_stays``)."""

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
            # Its admission died before it could ask: the user's token is gone, the owner is not. Nobody says any more
            # whether that user may name an image's own members (visibility, protected) in its metadata.
            own = {name: value for name, value in wanted.properties.items() if name not in BASE_KEYS}
            deps.images.create(msgspec.structs.replace(wanted, owner=op.server.project_id, properties=own))
        return {}

    def undo(self, deps: Deps, ops: Sequence[Op]) -> None:
        for op in ops:
            if not offloading(op):
                discard(deps, image_of(op), self.whole_stays)


class TakeSnapshots(Step):
    """The host keeps the guests' root disks as they are now. Undo: it forgets them."""

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
    """Whether the image has data that lie where a host put them, or is getting them: then those are the image
    service's. So they are, too, as long as it can't be asked: to remove what an image has would be worse."""
    try:
        image: Image = deps.images.show(image_id)
    except errors.NotFound:
        return False
    except errors.NovaError as error:
        LOG.warning("a snapshot in Ceph may be left there as image %s: %s", image_id, error.message)
        return True
    return image.status != QUEUED or TAKING in image.properties


def _forget(deps: Deps, op: Op, image_id: str, given: bool) -> None:
    """The host drops what it kept, but not what was ``given`` to the image service. One that can't be told owes it: no
    reason to hold up the server."""
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
    """The host has to forget this snapshot, and those of its pending cleanup."""
    LOG.warning("host %s does not forget a snapshot: the cleanup is pending: %s", op.server.host, why.message,
                extra={"server": op.uuid})

    def write(tx: Connection) -> None:
        older: Mapping[str, str] = next((
            cleanup.arguments for cleanup in services.pending_cleanups(tx, op.server.host)
            if (cleanup.server_uuid, cleanup.step) == (op.uuid, services.SNAPSHOT_CLEANUP)), {})
        given = {"given": [order.image_id]} if order.given else {}
        lists = {name: " ".join(dict.fromkeys([*older.get(name, "").split(), *more]))
                 for name, more in {"image_id": [order.image_id], "given": [], **given}.items()}
        services.add_cleanups(tx, [{"host": op.server.host, "server_uuid": op.uuid, "epoch": op.entry.epoch,
                                    "step": services.SNAPSHOT_CLEANUP,
                                    "arguments": {name: text for name, text in lists.items() if text}}])
    op.entry = deps.journal.leave_behind(op.entry, write)


def _kept(op: Op, host: str, outcome: Outcome) -> Result:
    if outcome.snapshot is None:
        return errors.image.NothingKept(server=op.uuid)
    return {"snapshot": outcome.snapshot, "host": host}


class UploadSnapshots(Step):
    """The host sends what it kept, and drops it. An image that has its data already is done, whoever heard of it; but
    whether its host came to the dropping then nobody knows."""

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
    """An upload says nothing about whether the guest runs."""
    return result if isinstance(result, errors.NovaError) else {}


def _members(image: Image, snapshot: DiskSnapshot) -> Mapping[str, object]:
    """What is known of the image once there is a file. Disks smaller than it could not hold it."""
    least = -(-snapshot.virtual_size_bytes // GIB)
    return {"disk_format": snapshot.format, "container_format": image.container_format or BARE,
            "min_disk": max(image.min_disk_gb, least)}


def is_whole(deps: Deps, op: Op) -> bool:
    """Whether the image has its data all the same: an answer may be lost."""
    try:
        return bool(deps.images.show(image_of(op)).status == ACTIVE)
    except errors.NovaError:
        return False


class DropImages(Step):
    """What a server that is deleted leaves at the image service: its shelved disk, and images that never got whole.
    What its host put where the image service keeps images is the host's to remove, unless an image has it."""

    uses = (*ORDERS, "images", "journal")
    pure, lenient = True, True  # repeated as often as need be, and never undone

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
    """Whether the operation came to where the guest goes from its host: its disk is the image's alone from then on."""
    return any(event.step == "OffloadGuests" for event in op.entry.history)


def image_wanted(op: Op) -> NewImage:
    """What the operation makes an image as. Bug: it makes none."""
    wanted = op.asked(ImageArguments).image
    if wanted is None:
        raise errors.Bug(f"'{op.entry.action}' makes no image")
    return wanted


def _snapshot(op: Op) -> DiskSnapshot:
    found = op.progress.snapshot
    if found is None:
        raise errors.Bug(f"'{op.entry.action}' has taken no snapshot")
    return found


def image_of(op: Op) -> str:
    """The image that the operation makes."""
    return image_wanted(op).id


def snapshot_order(deps: Deps, op: Op, image_id: str = "") -> SnapshotOrder:
    """The guest is quiesced where its image says ``os_require_quiesce``. Without an ``image_id`` of the image that the
    operation makes. Bug: it makes none."""
    build = build_order(deps, op.server, op, fence(op))
    properties = op.server.image.properties if op.server.image else {}
    quiesce = properties.get("os_require_quiesce", "").lower() in YES
    return SnapshotOrder(server_uuid=op.uuid, instance_name=build.instance_name, fence=build.fence, build=build,
                         image_id=image_id or image_of(op), quiesce=quiesce)


def discard(deps: Deps, image_id: str, whole_stays: bool = False) -> None:
    """Remove an image. One that can't be removed (the service is away, its owner protects it) is left with a warning:
    no server waits for it."""
    try:
        if whole_stays and deps.images.show(image_id).status == ACTIVE:
            return
        deps.images.delete(image_id)
    except errors.NotFound:
        return
    except errors.NovaError as error:
        LOG.warning("image %s is left at the image service: %s", image_id, error.message)
