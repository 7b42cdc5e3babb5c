"""What actions on one host ask for: refused at once, or begun."""

from __future__ import annotations

from nova import errors
from nova.conductor.world import World
from nova.model.server_orders import (
    ChangePassword,
    CreateBackup,
    CreateImage,
    RebuildServer,
    RescueServer,
    UnshelveServer,
)
from nova.model.servers import ServerDetail


class Actions:
    """Calls of ConductorRPC."""

    def __init__(self, world: World) -> None:
        self.world = world

    def rebuild_server(self, order: RebuildServer) -> ServerDetail:
        raise errors.Bug("to be written")

    def create_image(self, order: CreateImage) -> str:
        raise errors.Bug("to be written")

    def create_backup(self, order: CreateBackup) -> str:
        raise errors.Bug("to be written")

    def rescue_server(self, order: RescueServer) -> None:
        raise errors.Bug("to be written")

    def change_password(self, order: ChangePassword) -> None:
        raise errors.Bug("to be written")

    def unshelve_server(self, order: UnshelveServer) -> None:
        raise errors.Bug("to be written")
