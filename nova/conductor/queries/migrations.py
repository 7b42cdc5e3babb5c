"""Queries of migrations (moves of servers)."""

from __future__ import annotations

from collections.abc import Sequence

from nova.conductor.engine.deps import Deps
from nova.db.server import migrations, servers
from nova.db.sql.engine import Connection
from nova.model.server.migrations import Migration, MigrationQuery, ServerMigrations
from nova.model.server.servers import ServerQuery


class Migrations:
    """The migration calls of ConductorRPC."""

    def __init__(self, deps: Deps) -> None:
        self.deps = deps

    def list_migrations(self, query: MigrationQuery) -> tuple[Migration, ...]:
        """Return migrations of all servers by the query's conditions, the newest first. Raises
        api.PageMarkerNotFound."""
        most = self.deps.settings.max_limit
        limit = most if query.page.limit is None else min(query.page.limit, most)
        with self.deps.cell.reading() as tx:
            return migrations.select(tx, query, limit)

    def list_server_migrations(self, query: ServerQuery) -> ServerMigrations:
        """Return a server's live migrations, the oldest first, with the server's owner. Raises server.NotFound outside
        the scope."""
        with self.deps.cell.reading() as tx:
            return _of(tx, query, migrations.live_of(tx, query.uuid))

    def get_server_migration(self, query: ServerQuery, migration_id: int) -> ServerMigrations:
        """Return a migration, with the server's owner. Raises server.NotFound outside the scope;
        move.MigrationNotFound."""
        with self.deps.cell.reading() as tx:
            server = _of(tx, query, ())
            return ServerMigrations(project_id=server.project_id, user_id=server.user_id,
                                    migrations=(migrations.get(tx, query.uuid, migration_id),))


def _of(tx: Connection, query: ServerQuery, found: Sequence[Migration]) -> ServerMigrations:
    """Return the migrations with the server's owner. Raises server.NotFound outside the scope."""
    target = servers.target(tx, query.uuid, query.scope)
    return ServerMigrations(project_id=target.project_id, user_id=target.user_id, migrations=tuple(found))
