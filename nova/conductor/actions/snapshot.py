"""Create an image of a server, or a backup of which only the newest are kept. The server itself does not change.

The operation starts first. The image's record is then created with the user's own token, so that the user owns it and
it counts against the user's quota. If the conductor dies in between, its successor creates the record.
"""

from __future__ import annotations

import contextlib
import uuid as uuids
from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from nova import context, decoding, errors
from nova.conductor import steps
from nova.conductor.actions.volume import stopped_images, volume_images
from nova.conductor.engine.begin import row_of, start_operation_on_host
from nova.conductor.engine.deps import Deps
from nova.conductor.engine.operation import Op, Result, Secrets
from nova.conductor.engine.workflow import Step, Workflow
from nova.conductor.quota import quota
from nova.conductor.steps.images import ACTIVE, ImageArguments, discard
from nova.db.server import states
from nova.db.server.server_row import ServerRow
from nova.db.server.states import StateChange
from nova.model.image.images import Image, ImageQuery, NewImage
from nova.model.server.server_orders import CreateBackup, CreateImage
from nova.model.server.states import TaskState, VmState
from nova.model.volumes import root_of

SNAPSHOT, BACKUP = "snapshot", "backup"

#: Properties that describe an image's own data and would be wrong for another image, and the image service's own.
OF_ITS_DATA = ("img_signature", "os_glance_")
#: Properties of an earlier snapshot that describe its origin.
OF_ITS_ORIGIN = frozenset({"image_type", "instance_uuid", "user_id", "base_image_ref", "backup_type", "image_state",
                           "image_location", "owner_id"})


class ImagesOfServers:
    """The image and backup calls of ConductorRPC."""

    def __init__(self, deps: Deps) -> None:
        self.deps = deps

    def create_image(self, order: CreateImage) -> str:
        """Start to create an image of a server; return its id when its record exists, without data yet.

        Raises server.NotFound, server.WrongState; quota.TooMany for its metadata; errors of the image service.
        """
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
        """Start to create a backup of a server; return its id, as ``create_image`` does.

        With a rotation of 0, older backups of the type are deleted, none is created, and the id is empty. Raises
        volume.NoBackup if the root disk is a volume.
        """
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
    """Return an image with the request's properties, without those of the server's own image."""
    return NewImage(id=image_id, name=order.name, properties={
        **order.metadata, **origin_of(row, order.metadata.get("image_type", SNAPSHOT))})


def begin_with_image(deps: Deps, action: str, uuid: str, arguments: Callable[[ServerRow], ImageArguments],
                     secrets: Secrets | None = None) -> None:
    """Start the operation and create the image's record as the user. ``secrets``: of the operation, only in memory.

    If the image service refuses, the operation ends immediately and its error is raised.
    """
    entry = deps.transact_together(uuid, lambda tx: start_operation_on_host(deps, tx, action, uuid, arguments))
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
            deps.cell.transact(lambda tx: states.finish(tx, [StateChange([entry], {})], "error", {entry.id: text}))
        raise
    if not deps.journal.still_mine([entry]):
        discard(deps, image.id)  # a delete overtook it and did not find the image yet


def holding(deps: Deps, row: ServerRow, image: NewImage) -> dict[str, Any]:
    """Return the arguments of an operation that creates ``image`` of a server, with the inherited properties."""
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
    """Return the properties that describe the origin of a server's image. They override the request's metadata.

    A snapshot's ``image_type`` is an exception: it is only a label for searches, and clients set their own.
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
    """Arguments of a backup. ``rotation``: how many backups of its type are kept; ``kept``: this one is."""

    backup_type: str
    rotation: int
    kept: bool = False


class RotateBackups(Step):
    """Keep only the newest backups of one type of a server: as many as its rotation says.

    A backup that cannot be removed now is removed by the next one: this backup succeeds in any case.
    """

    uses = ("images",)
    ignores_errors = True

    def do(self, deps: Deps, ops: Sequence[Op]) -> Sequence[Result]:
        for op in ops:
            self._rotate(deps, op)
        return [{} for _ in ops]

    @staticmethod
    def _rotate(deps: Deps, op: Op) -> None:
        """Delete the oldest backups. Only images of the server's own project count: others may claim to be its
        backups."""
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
    steps.HoldImage(whole_stays=True),                        # its record; undo: delete it if it has no data
    steps.TakeSnapshots(task=TaskState.IMAGE_SNAPSHOT,        # a file on the host; undo: drop it
                        event="compute_snapshot_instance"),
    steps.UploadSnapshots(task=TaskState.IMAGE_UPLOADING),    # the host uploads it, and drops it
    asks=ImageArguments,
)

CREATE_BACKUP = Workflow(
    "createBackup",
    steps.HoldImage(when="kept", whole_stays=True),           # skipped with a rotation of 0
    steps.TakeSnapshots(when="kept", event="compute_backup_instance"),
    steps.UploadSnapshots(when="kept"),
    RotateBackups(),                                          # delete the oldest
    asks=Backup,
)
