"""The fake conductor's part for what happens to servers in their lives: rebuilds, images, moves, shelving."""

from __future__ import annotations

import uuid
from typing import Any

import msgspec

from nova import errors
from nova.model.server_orders import (
    ChangePassword,
    CreateBackup,
    CreateImage,
    EvacuateServer,
    LiveMigrateServer,
    MigrateServer,
    MigrationOrder,
    RebuildServer,
    RescueServer,
    ResizeServer,
    UnshelveServer,
)
from nova.model.servers import ServerDetail
from nova.model.states import ACTIONS, TaskState, VmState, refusal

replace = msgspec.structs.replace

#: Of a rebuild's order what the server's row has, too.
REBUILT = {"name", "metadata", "description", "hostname", "key_name", "user_data", "access_ip_v4", "access_ip_v6",
           "disk_config", "trusted_certs"}


class ServerLife:
    """Beside Servers, whose ``servers`` it changes: actions end at once. ``asked`` keeps the typed orders, ``told`` the
    calls that hurried or stopped a live migration.
    """

    servers: dict[str, Any]
    _find: Any

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[Any] = []
        self.told: list[str] = []

    def _begin(self, name: str, order: Any) -> ServerDetail:
        server: ServerDetail = self._find(order.uuid)
        action = ACTIONS[name]
        reason = refusal(action, server.vm_state, server.task_state, server.launched_at is not None)
        if reason is not None:
            raise errors.WrongState(f"Cannot '{name}' instance {order.uuid} while it is in {reason.attribute} "
                                    f"{reason.value}")
        self.asked.append(order)
        changed = replace(server, vm_state=action.result or server.vm_state)
        self.servers[server.uuid] = changed
        return changed

    def rebuild_server(self, order: RebuildServer) -> ServerDetail:
        """Answered while it is being rebuilt."""
        server = self._begin("rebuild", order)
        values = {name: getattr(order, name) for name in order.fields if name in REBUILT}
        self.servers[server.uuid] = replace(server, image_id=order.image_id, vm_state=VmState.ACTIVE, **values)
        return replace(self.servers[server.uuid], task_state=TaskState.REBUILDING)

    def resize_server(self, order: ResizeServer) -> None:
        if order.flavor_id == self._find(order.uuid).flavor.flavorid:
            raise errors.Invalid("When resizing, instances must change flavor!")
        self._begin("resize", order)

    def migrate_server(self, order: MigrateServer) -> None:
        self._begin("migrate", order)

    def live_migrate_server(self, order: LiveMigrateServer) -> None:
        self._begin("live-migration", order)

    def evacuate_server(self, order: EvacuateServer) -> None:
        self._begin("evacuate", order)

    def create_image(self, order: CreateImage) -> str:
        self._begin("createImage", order)
        return str(uuid.uuid4())

    def create_backup(self, order: CreateBackup) -> str:
        self._begin("createBackup", order)
        return str(uuid.uuid4()) if order.rotation else ""

    def rescue_server(self, order: RescueServer) -> None:
        self._begin("rescue", order)

    def change_password(self, order: ChangePassword) -> None:
        self._begin("changePassword", order)

    def unshelve_server(self, order: UnshelveServer) -> None:
        self._begin("unshelve", order)

    def abort_live_migration(self, order: MigrationOrder) -> None:
        self._begin("live_migration_cancel", order)
        self.told.append("abort_live_migration")

    def force_live_migration(self, order: MigrationOrder) -> None:
        self._begin("live_migration_force_complete", order)
        self.told.append("force_live_migration")
