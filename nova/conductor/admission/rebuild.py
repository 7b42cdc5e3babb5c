"""Admission of a rebuild: the image, key and quotas; then the server's row says what it is to be, and it begins."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from nova import context
from nova.conductor.admission import promises, wishes
from nova.conductor.admission.servers import check_fits, check_items, keypair, usable_image, wants_drive
from nova.conductor.engine import quota
from nova.conductor.engine.begin import begin_on_host, builtins, row_of
from nova.conductor.engine.deps import World
from nova.db import servers, states
from nova.db.engine import Connection
from nova.model.images import Image
from nova.model.server_orders import RebuildServer
from nova.model.servers import ServerDetail, ServerQuery
from nova.model.states import VmState

#: Fields of the order that are columns of the row, as they stand.
PLAIN = ("name", "description", "hostname", "user_data", "access_ip_v4", "access_ip_v6", "disk_config",
         "trusted_certs")
OF_IMAGE = ("image", "image_id", "kernel_id", "ramdisk_id")


class Rebuilds:
    """A call of ConductorRPC. ``detail`` answers what the server is then."""

    def __init__(self, world: World, detail: Callable[[ServerQuery], ServerDetail]) -> None:
        self.world, self._detail = world, detail

    def rebuild_server(self, order: RebuildServer) -> ServerDetail:
        row = row_of(self.world, order.uuid)
        image = usable_image(self.world, order.image_id)
        check_fits(row.flavor, image)
        promises.check_same_place(self.world, row.flavor, row.image, image)
        if "disk_config" in order.fields:
            wishes.check_disk_config(order.disk_config, image)
        changes = {**_of_image(image, row), **{name: getattr(order, name) for name in PLAIN if name in order.fields},
                   **self._checked(order)}
        entry = self.world.cell.transact(lambda tx: self._begin(tx, order, changes))
        answer = self._detail(ServerQuery(uuid=order.uuid))
        self.world.runner.start([entry], secrets={"admin_password": order.admin_password})
        return answer

    def _checked(self, order: RebuildServer) -> Mapping[str, Any]:
        """The changes that must be looked up, or fit the quota."""
        who = context.current()
        whose = quota.owner(self.world, who.project_id, who.user_id)
        with self.world.api.reading() as tx:
            key = keypair(tx, who.user_id or "", order.key_name)
            _project, limits = quota.effective(self.world, tx, whose)
        check_items(order.metadata, order.files, limits)
        changes: dict[str, Any] = {}
        if "files" in order.fields:
            changes["files"] = order.files or None
        if "key_name" in order.fields:
            changes |= {"key_name": order.key_name, "public_key": key.public_key if key else None,
                        "key_type": key.type if key else "ssh"}
        return changes

    def _begin(self, tx: Connection, order: RebuildServer, changes: Mapping[str, Any]) -> states.Entry:
        """The fields are written with the journal's row: whoever runs it finds them."""
        def arguments(row: Any) -> Mapping[str, Any]:
            old = {name: builtins(getattr(row, name)) for name in OF_IMAGE}
            return {"old": old, "other_image": order.image_id != row.image_id, "keep_ephemeral":
                    order.preserve_ephemeral, "was_off": row.vm_state == VmState.STOPPED.value,
                    "metadata": _change_metadata(tx, order)}
        entry = begin_on_host(self.world, tx, "rebuild", order.uuid, arguments)
        servers.update(tx, order.uuid, changes)
        return entry


def _of_image(image: Image, row: Any) -> Mapping[str, Any]:
    return {"image": image, "image_id": image.id, "kernel_id": image.kernel_id or "",
            "ramdisk_id": image.ramdisk_id or "", "config_drive": row.config_drive or wants_drive(image)}


def _change_metadata(tx: Connection, order: RebuildServer) -> Mapping[str, str]:
    """All of the server's metadata after it: what is asked for is all there is then."""
    now = servers.children(tx, [order.uuid])[0].get(order.uuid, {})
    if "metadata" not in order.fields:
        return now
    servers.change_metadata(tx, order.uuid, order.metadata, [key for key in now if key not in order.metadata])
    return dict(order.metadata)
