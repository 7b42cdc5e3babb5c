"""The fake conductor's part for what belongs to servers: groups, tags, password, diagnostics, migrations, events."""

from __future__ import annotations

import datetime
from typing import Any

import msgspec

from nova import context, errors
from nova.model.base import Scope, utcnow
from nova.model.diagnostics import Diagnostics
from nova.model.migrations import Migration, MigrationQuery, ServerMigrations
from nova.model.server_groups import NewServerGroup, ServerGroup, ServerGroupQuery
from nova.model.server_parts import ExternalEvent, ServerPassword, ServerTopology, StateReset, TagChange, TagSet
from nova.model.servers import ServerQuery
from nova.model.states import VmState

replace = msgspec.structs.replace


class ServerGroups:
    """``most_groups``: the quota."""

    def __init__(self) -> None:
        super().__init__()
        self.groups: dict[str, ServerGroup] = {}
        self.most_groups = 10_000

    def list_server_groups(self, query: ServerGroupQuery) -> tuple[ServerGroup, ...]:
        held = [group for group in self.groups.values() if query.scope.project_id in (None, group.project_id)]
        held = held[query.page.offset:]
        return tuple(held if query.page.limit is None else held[:query.page.limit])

    def get_server_group(self, uuid: str, scope: Scope) -> ServerGroup:
        group = self.groups.get(uuid)
        if group is None or scope.project_id not in (None, group.project_id):
            raise errors.NotFound(f"Instance group {uuid} could not be found.")
        return group

    def create_server_group(self, group: NewServerGroup) -> ServerGroup:
        caller = context.current()
        if len(self.groups) >= self.most_groups:
            raise errors.OverQuota("Quota exceeded, too many server groups.")
        made = ServerGroup(uuid=group.uuid, name=group.name, policy=group.policy, rules=group.rules,
                           project_id=str(caller.project_id), user_id=str(caller.user_id), created_at=utcnow())
        self.groups[made.uuid] = made
        return made

    def delete_server_group(self, uuid: str, scope: Scope) -> None:
        del self.groups[self.get_server_group(uuid, scope).uuid]


class ServerParts:
    """Beside Servers, whose ``servers`` it changes. ``resets`` and ``events`` keep what the API asked for."""

    servers: dict[str, Any]
    _find: Any

    def __init__(self) -> None:
        super().__init__()
        self.passwords: dict[str, str] = {}
        self.topologies: dict[str, ServerTopology] = {}
        self.diagnostics: dict[str, Diagnostics] = {}
        self.resets: list[StateReset] = []
        self.events: list[ExternalEvent] = []
        self.event_codes: dict[str, int] = {}  # by the event's tag; others are accepted

    def change_tags(self, change: TagChange) -> TagSet:
        server = self._find(change.uuid)
        now = set(server.tags)
        if not now.issuperset(change.remove):
            raise errors.NotFound(f"Server {server.uuid} has no tag '{change.remove[0]}'")
        after = (set() if change.replace else now - set(change.remove)) | set(change.add)
        self.servers[server.uuid] = replace(server, tags=tuple(sorted(after)))
        return TagSet(tags=tuple(sorted(after)), changed=after != now)

    def get_server_password(self, query: ServerQuery) -> ServerPassword:
        server = self._find(query.uuid, query.scope)
        return ServerPassword(project_id=server.project_id, user_id=server.user_id,
                              password=self.passwords.get(query.uuid, ""))

    def clear_server_password(self, uuid: str) -> None:
        self.passwords.pop(uuid, None)

    def get_server_topology(self, query: ServerQuery) -> ServerTopology:
        server = self._find(query.uuid, query.scope)
        return self.topologies.get(query.uuid) or ServerTopology(project_id=server.project_id, user_id=server.user_id)

    def get_diagnostics(self, uuid: str) -> Diagnostics:
        if uuid not in self.diagnostics:
            raise errors.NotSupported("This driver has no diagnostics.")
        return self.diagnostics[uuid]

    def reset_state(self, reset: StateReset) -> None:
        self.resets.append(reset)
        self.servers[reset.uuid] = replace(self._find(reset.uuid), vm_state=VmState(reset.state), task_state=None)

    def external_events(self, events: tuple[ExternalEvent, ...]) -> tuple[int, ...]:
        self.events += events
        return tuple(self.event_codes.get(event.tag or "", 200) for event in events)


class Migrations:
    """``queries`` of the list are kept in ``migration_queries``."""

    _find: Any

    def __init__(self) -> None:
        super().__init__()
        self.migrations: list[Migration] = []
        self.migration_queries: list[MigrationQuery] = []

    def add_migration(self, **fields: Any) -> Migration:
        number = len(self.migrations) + 1
        at = datetime.datetime(2026, 1, 1, 12, 0, number)
        made = Migration(**{
            "id": number, "uuid": f"{number:08}-0000-4000-8000-000000000000", "type": "live-migration",
            "status": "running", "user_id": "demo", "project_id": "demo", "source_compute": "host1",
            "source_node": "host1", "dest_compute": "host2", "dest_node": "host2", "dest_host": "10.0.0.2",
            "created_at": at, "updated_at": at, **fields})
        self.migrations.insert(0, made)
        return made

    def list_migrations(self, query: MigrationQuery) -> tuple[Migration, ...]:
        self.migration_queries.append(query)
        held = [move for move in self.migrations if query.server_uuid in (None, move.server_uuid)]
        uuids = [move.uuid for move in held]
        if query.page.marker is not None:
            if query.page.marker not in uuids:
                raise errors.Invalid(f"marker [{query.page.marker}] not found")
            held = held[uuids.index(query.page.marker) + 1:]
        return tuple(held[:query.page.limit])

    def list_server_migrations(self, query: ServerQuery) -> ServerMigrations:
        server = self._find(query.uuid, query.scope)
        return ServerMigrations(project_id=server.project_id, user_id=server.user_id, migrations=tuple(
            move for move in self.migrations if move.server_uuid == server.uuid and move.live))

    def get_server_migration(self, query: ServerQuery, migration_id: int) -> ServerMigrations:
        server = self._find(query.uuid, query.scope)
        found = tuple(move for move in self.migrations
                      if move.server_uuid == server.uuid and move.id == migration_id)
        if not found:
            raise errors.NotFound(f"Migration {migration_id} not found for server {server.uuid}.")
        return ServerMigrations(project_id=server.project_id, user_id=server.user_id, migrations=found)
