"""Moves between hosts and resizes: refused at once, or begun."""

from __future__ import annotations

from nova import errors
from nova.conductor.world import World
from nova.model.server_orders import (
    EvacuateServer,
    LiveMigrateServer,
    MigrateServer,
    MigrationOrder,
    ResizeServer,
)


class Moves:
    """Calls of ConductorRPC."""

    def __init__(self, world: World) -> None:
        self.world = world

    def resize_server(self, order: ResizeServer) -> None:
        raise errors.Bug("to be written")

    def migrate_server(self, order: MigrateServer) -> None:
        raise errors.Bug("to be written")

    def live_migrate_server(self, order: LiveMigrateServer) -> None:
        raise errors.Bug("to be written")

    def evacuate_server(self, order: EvacuateServer) -> None:
        raise errors.Bug("to be written")

    def abort_live_migration(self, order: MigrationOrder) -> None:
        raise errors.Bug("to be written")

    def force_live_migration(self, order: MigrationOrder) -> None:
        raise errors.Bug("to be written")
