"""Admission of what makes an image of a server: createImage, createBackup and shelve.

The operation is begun first, and then the image's record is made with the user's own token, so that it is theirs (and
counts against their own quota). Whoever takes over from a conductor that dies in between makes the record itself.
"""

from __future__ import annotations

import contextlib
import uuid as uuids
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from nova import context, errors
from nova.conductor.engine import quota
from nova.conductor.engine.begin import begin_on_host, builtins
from nova.conductor.engine.deps import World
from nova.conductor.steps.images import discard
from nova.db import states
from nova.model.images import Image, NewImage
from nova.model.server_orders import CreateBackup, CreateImage

SNAPSHOT, BACKUP = "snapshot", "backup"

#: Properties that say something of an image's own data, and would be wrong of another's; and the image service's own.
OF_ITS_DATA = ("img_signature", "os_glance_")
#: Properties of an earlier snapshot's that say where that one came from.
OF_ITS_ORIGIN = frozenset({"image_type", "instance_uuid", "user_id", "base_image_ref", "backup_type", "image_state",
                           "image_location", "owner_id"})


class ImagesOfServers:
    """Calls of ConductorRPC."""

    def __init__(self, world: World) -> None:
        self.world = world

    def create_image(self, order: CreateImage) -> str:
        _check_metadata(self.world, order)
        image_id = str(uuids.uuid4())

        def arguments(row: Any) -> Mapping[str, Any]:
            return holding(self.world, row, NewImage(
                id=image_id, name=order.name,
                properties={**order.metadata, **_origin(row, order.metadata.get("image_type", SNAPSHOT))}))
        begin_with_image(self.world, "createImage", order.uuid, arguments)
        return image_id

    def create_backup(self, order: CreateBackup) -> str:
        _check_metadata(self.world, order)
        image_id = str(uuids.uuid4())

        def arguments(row: Any) -> Mapping[str, Any]:
            rotation = {"backup_type": order.backup_type, "rotation": order.rotation, "kept": order.rotation > 0}
            image = NewImage(id=image_id, name=order.name, properties={
                **order.metadata, **_origin(row, BACKUP), "backup_type": order.backup_type})
            return {**(holding(self.world, row, image) if order.rotation else {}), **rotation}
        begin_with_image(self.world, "createBackup", order.uuid, arguments)
        return image_id if order.rotation else ""


def shelve(world: World, uuid: str) -> None:
    """Begin to shelve a server, and with no time to wait, to offload it."""
    def arguments(row: Any) -> Mapping[str, Any]:
        image = NewImage(id=str(uuids.uuid4()), name=f"{row.name}-shelved"[:255], properties=_origin(row, SNAPSHOT))
        return {**holding(world, row, image), "offload": world.settings.shelved_offload_time == 0}
    begin_with_image(world, "shelve", uuid, arguments)


def begin_with_image(world: World, action: str, uuid: str, arguments: Callable[[Any], Mapping[str, Any]]) -> None:
    """Begin, and make the image's record as the user. An image service that says no ends the operation at once, and
    what it says is the answer."""
    entry = world.cell.transact(lambda tx: begin_on_host(world, tx, action, uuid, arguments))
    with world.runner.holding(entry):
        if "image" in entry.arguments:
            _make(world, entry)
        world.runner.start([entry], secrets={"image_made": True})


def _make(world: World, entry: states.Entry) -> None:
    try:
        world.images.create(_wanted(entry), as_user=True)
    except errors.NovaError as error:
        text = error.message
        with contextlib.suppress(errors.Overtaken):
            world.cell.transact(lambda tx: states.finish(tx, [entry], {}, "error", {entry.id: text}))
        raise
    if not world.runner.journal.still_mine([entry]):
        discard(world, _wanted(entry).id)  # a delete came, and knew of an image that was not there yet


def _wanted(entry: states.Entry) -> NewImage:
    return msgspec.convert(entry.arguments["image"], NewImage)


def holding(world: World, row: Any, image: NewImage) -> Mapping[str, Any]:
    """The arguments of an operation that makes ``image`` of a server: with what the image inherits."""
    base: Image | None = row.image
    inherited = _inherited(base, world.settings.non_inheritable_image_properties) if base else {}
    whole = msgspec.structs.replace(
        image, min_disk_gb=max(base.min_disk_gb if base else 0, row.flavor.root_gb),
        min_ram_mb=base.min_ram_mb if base else 0, properties={**inherited, **image.properties})
    return {"snapshot_image_id": image.id, "image": builtins(whole)}


def _inherited(base: Image, but: tuple[str, ...]) -> dict[str, str]:
    return {name: value for name, value in base.properties.items()
            if name not in but and name not in OF_ITS_ORIGIN and not name.startswith(OF_ITS_DATA)}


def _origin(row: Any, kind: str) -> dict[str, str]:
    """Where an image of a server came from: these properties are ours to set, whatever the request's metadata says.

    But for a snapshot's ``image_type``, which is only a label to find it by: clients put their own there.
    """
    who = context.current()
    return {"image_type": kind, "instance_uuid": row.uuid, "user_id": who.user_id or row.user_id,
            "owner_id": row.project_id, "base_image_ref": row.image_id, "image_state": "available",
            "image_location": "snapshot"}


def _check_metadata(world: World, order: CreateImage | CreateBackup) -> None:
    if not order.metadata_limited or not order.metadata:
        return
    who = context.current()
    whose = quota.owner(world, who.project_id, who.user_id)
    with world.api.reading() as tx:
        _project, limits = quota.effective(world, tx, whose)
    if not quota.fits(limits.get("metadata_items", -1), 0, len(order.metadata)):
        raise quota.TooManyItems(what="too many items of metadata", limit=limits["metadata_items"])
