"""Make an image of a server, or a backup of which only the newest are kept. The server stays as it is.

The operation is begun first, and then the image's record is made with the user's own token, so that it is theirs (and
counts against their own quota). Whoever takes over from a conductor that dies in between makes the record itself.
"""

from __future__ import annotations

import contextlib
import uuid as uuids
from collections.abc import Callable, Sequence

import msgspec

from nova import context, decoding, errors
from nova.conductor import steps
from nova.conductor.actions.volume import stopped_images, volume_images
from nova.conductor.engine.begin import begin_on_host, row_of
from nova.conductor.engine.deps import Deps
from nova.conductor.engine.operation import Op, Result, Secrets
from nova.conductor.engine.workflow import Step, Workflow
from nova.conductor.quota import quota
from nova.conductor.steps.images import ACTIVE, ImageArguments, discard
from nova.db.server import states
from nova.db.server.server_row import ServerRow
from nova.db.sql.types import AnyColumn
from nova.model.image.images import Image, ImageQuery, NewImage
from nova.model.server.server_orders import CreateBackup, CreateImage
from nova.model.server.states import TaskState, VmState
from nova.model.volumes import root_of

SNAPSHOT, BACKUP = "snapshot", "backup"

#: Properties that say something of an image's own data, and would be wrong of another's; and the image service's own.
OF_ITS_DATA = ("img_signature", "os_glance_")
#: Properties of an earlier snapshot's that say where that one came from.
OF_ITS_ORIGIN = frozenset({"image_type", "instance_uuid", "user_id", "base_image_ref", "backup_type", "image_state",
                           "image_location", "owner_id"})


class ImagesOfServers:
    """Calls of ConductorRPC."""

    def __init__(self, deps: Deps) -> None:
        self.deps = deps

    def create_image(self, order: CreateImage) -> str:
        """Answered when the image's record is there, without data yet. server.NotFound, server.WrongState;
        quota.TooMany of its metadata; what the image service says."""
        _check_metadata(self.deps, order)
        image_id = str(uuids.uuid4())

        def arguments(row: ServerRow) -> ImageArguments:
            return ImageArguments(**holding(self.deps, row, _bare(row, order, image_id)))
        row = row_of(self.deps, order.uuid)
        if root_of(row.volumes or ()) is None:
            begin_with_image(self.deps, "createImage", order.uuid, arguments)
        elif order.stopped and row.vm_state == VmState.ACTIVE.value:
            volume_images.check(self.deps, row)
            begin_with_image(self.deps, "create_image_stopped", order.uuid,
                             lambda row: stopped_images.of_volumes(row, arguments(row)), stopped_images.as_asker())
        else:
            volume_images.make(self.deps, row, holding(self.deps, row, _bare(row, order, image_id))["image"])
        return image_id

    def create_backup(self, order: CreateBackup) -> str:
        """Answered as ``create_image``. With a rotation of 0 older backups of the type go, and none is made: empty.
        volume.NoBackup: its root disk is a volume."""
        _check_metadata(self.deps, order)
        image_id = str(uuids.uuid4())

        def arguments(row: ServerRow) -> Backup:
            if root_of(row.volumes or ()) is not None:
                raise errors.volume.NoBackup()
            image = NewImage(id=image_id, name=order.name, properties={
                **order.metadata, **origin_of(row, BACKUP), "backup_type": order.backup_type})
            return Backup(**(holding(self.deps, row, image) if order.rotation else {}), kept=order.rotation > 0,
                          backup_type=order.backup_type, rotation=order.rotation)
        begin_with_image(self.deps, "createBackup", order.uuid, arguments)
        return image_id if order.rotation else ""


def _bare(row: ServerRow, order: CreateImage, image_id: str) -> NewImage:
    """With what the request says, and nothing of the server's own image."""
    return NewImage(id=image_id, name=order.name, properties={
        **order.metadata, **origin_of(row, order.metadata.get("image_type", SNAPSHOT))})


def begin_with_image(deps: Deps, action: str, uuid: str, arguments: Callable[[ServerRow], ImageArguments],
                     secrets: Secrets | None = None) -> None:
    """Begin, and make the image's record as the user. An image service that says no ends the operation at once, and
    what it says is the answer. ``secrets``: of the operation, in memory alone."""
    entry = deps.cell.transact(lambda tx: begin_on_host(deps, tx, action, uuid, arguments))
    with deps.runner.holding(entry):
        image = decoding.convert(entry.arguments, ImageArguments).image
        if image is not None:
            _make(deps, entry, image)
        deps.runner.start([entry], secrets={**(secrets or {}), "image_made": True})


def _make(deps: Deps, entry: states.Entry, image: NewImage) -> None:
    try:
        deps.images.create(image, as_user=True)
    except errors.NovaError as error:
        text = error.message
        with contextlib.suppress(errors.Overtaken):
            deps.cell.transact(lambda tx: states.finish(tx, [entry], {}, "error", {entry.id: text}))
        raise
    if not deps.journal.still_mine([entry]):
        discard(deps, image.id)  # a delete came, and knew of an image that was not there yet


def holding(deps: Deps, row: ServerRow, image: NewImage) -> dict[str, AnyColumn]:
    """The arguments of an operation that makes ``image`` of a server: with what the image inherits."""
    base: Image | None = row.image
    inherited = _inherited(base, deps.settings.non_inheritable_image_properties) if base else {}
    whole = msgspec.structs.replace(
        image, min_disk_gb=max(base.min_disk_gb if base else 0, row.flavor.root_gb),
        min_ram_mb=base.min_ram_mb if base else 0, properties={**inherited, **image.properties})
    return {"snapshot_image_id": image.id, "image": whole}


def _inherited(base: Image, but: tuple[str, ...]) -> dict[str, str]:
    return {name: value for name, value in base.properties.items()
            if name not in but and name not in OF_ITS_ORIGIN and not name.startswith(OF_ITS_DATA)}


def origin_of(row: ServerRow, kind: str) -> dict[str, str]:
    """Where an image of a server came from: these properties are ours to set, whatever the request's metadata says.

    But for a snapshot's ``image_type``, which is only a label to find it by: clients put their own there.
    """
    who = context.current()
    return {"image_type": kind, "instance_uuid": row.uuid, "user_id": who.user_id or row.user_id,
            "owner_id": row.project_id, "base_image_ref": row.image_id, "image_state": "available",
            "image_location": "snapshot"}


def _check_metadata(deps: Deps, order: CreateImage | CreateBackup) -> None:
    if not order.metadata_limited or not order.metadata:
        return
    who = context.current()
    whose = quota.owner(deps, who.project_id, who.user_id)
    with deps.api.reading() as tx:
        _project, limits = quota.effective(deps, tx, whose)
    if not quota.fits(limits.get("metadata_items", -1), 0, len(order.metadata)):
        raise errors.quota.TooMany(what="too many items of metadata", limit=limits["metadata_items"])


class Backup(ImageArguments):
    """What a backup is begun with. ``rotation``: how many of its type stay; ``kept``: this one does."""

    backup_type: str
    rotation: int
    kept: bool = False


class RotateBackups(Step):
    """Of one type of a server's backups the newest stay: as many as its rotation says.

    What cannot be removed now is removed by the next backup: this one is made, whatever becomes of the old ones.
    """

    uses = ("images",)
    lenient = True

    def do(self, deps: Deps, ops: Sequence[Op]) -> Sequence[Result]:
        for op in ops:
            self._rotate(deps, op)
        return [{} for _ in ops]

    @staticmethod
    def _rotate(deps: Deps, op: Op) -> None:
        """Images of others may say that they are this server's backups: only its own project's count."""
        asked = op.asked(Backup)
        found = deps.images.list(ImageQuery(filters={
            "image_type": "backup", "backup_type": asked.backup_type, "instance_uuid": op.uuid,
            "owner": op.server.project_id, "status": ACTIVE}))
        newest_first = sorted(found, reverse=True,
                              key=lambda image: (str(image.created_at), image.id == asked.snapshot_image_id))
        for image in newest_first[asked.rotation:]:
            discard(deps, image.id)


CREATE_IMAGE = Workflow(
    "createImage",
    steps.HoldImage(whole_stays=True),                        # its record; undo: delete it, if it has no data
    steps.TakeSnapshots(task=TaskState.IMAGE_SNAPSHOT,        # a file on the host; undo: drop it
                        event="compute_snapshot_instance"),
    steps.UploadSnapshots(task=TaskState.IMAGE_UPLOADING),    # the host sends it, and drops it
    asks=ImageArguments,
)

CREATE_BACKUP = Workflow(
    "createBackup",
    steps.HoldImage(when="kept", whole_stays=True),           # with a rotation of 0 none is kept
    steps.TakeSnapshots(when="kept", event="compute_backup_instance"),
    steps.UploadSnapshots(when="kept"),
    RotateBackups(),                                          # the oldest go
    asks=Backup,
)
