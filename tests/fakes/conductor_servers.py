"""Parts of the fake conductor: servers, whose actions end immediately, and their resources."""

from __future__ import annotations

import uuid
from typing import Any

from nova import context, errors
from nova.model.base import Scope
from nova.model.server.migrations import ServerMigrations
from nova.model.server.server_parts import ServerPassword, ServerTopology, TagSet
from nova.model.server.servers import CreatedServers, ServerPage, ServerSummary, ServerTarget
from nova.model.server.states import ACTIONS, TaskState, VmState, refusal
from tests.fakes.shelves import EVERYTHING, after, first, replace

#: Calls that begin an action and have no answer.
BEGINS = {"migrate_server": "migrate", "live_migrate_server": "live-migration", "evacuate_server": "evacuate",
          "rescue_server": "rescue", "change_password": "changePassword", "unshelve_server": "unshelve",
          "abort_live_migration": "live_migration_cancel", "force_live_migration": "live_migration_force_complete"}
#: Calls that begin an action that has arguments.
LIFE = (*BEGINS, "rebuild_server", "resize_server", "create_image", "create_backup")
#: Fields of a rebuild's order that are also in the server's row.
REBUILT = {"name", "metadata", "description", "hostname", "key_name", "user_data", "access_ip_v4", "access_ip_v6",
           "disk_config", "trusted_certs"}


class Servers:
    def _find(self: Any, uuid: str, scope: Scope = EVERYTHING, with_deleted: bool = False) -> Any:
        server = self.servers.get(uuid)
        if (server is None or scope.project_id not in (None, server.project_id)
                or (server.deleted and not with_deleted)):
            raise errors.NotFound(f"Instance {uuid} could not be found.")
        return server

    def _change(self: Any, server: Any, **fields: Any) -> Any:
        self.servers[server.uuid] = replace(server, **fields)
        return self.servers[server.uuid]

    def _begin(self: Any, name: str, /, order: Any, **fields: Any) -> None:
        """Begin an action, which ends immediately. Raises WrongState in states that do not allow it."""
        server, action = self._find(order.uuid), ACTIONS[name]
        reason = refusal(action, server.vm_state, server.task_state, server.launched_at is not None)
        if reason is not None:
            raise errors.WrongState(f"Cannot '{name}' instance {order.uuid} while it is in "
                                    f"{reason.attribute} {reason.value}")
        self._change(server, **{"vm_state": action.result or server.vm_state, **fields})

    def create_servers(self: Any, order: Any) -> Any:
        caller = context.current()
        made = [self.add_server(name=order.name, vm_state=VmState.BUILDING, task_state=TaskState.SCHEDULING,
                                project_id=caller.project_id, user_id=caller.user_id, launched_at=None, host=None,
                                node=None, metadata=order.metadata, reservation_id="r-fake")
                for _ in range(order.max_count)]
        return CreatedServers(reservation_id="r-fake", uuids=tuple(server.uuid for server in made))

    def get_server(self: Any, query: Any) -> Any:
        server = self._find(query.uuid, query.scope, query.with_deleted)
        if server.unknown and not query.with_unknown:
            raise errors.Unavailable("The database does not answer")
        return server

    def list_servers(self: Any, query: Any) -> Any:
        held = [server for server in self.servers.values() if query.scope.project_id in (None, server.project_id)]
        if any(server.unknown for server in held) and query.silent_cells != "show":
            if query.silent_cells == "skip":
                return ServerPage()
            raise errors.Unavailable("The database does not answer")
        held = after(query.page.marker, reversed(held), "uuid")[:query.page.limit]
        if query.detail:
            return ServerPage(servers=tuple(held))
        return ServerPage(summaries=tuple(ServerSummary(uuid=server.uuid, name=server.name, unknown=server.unknown)
                                          for server in held))

    def get_target(self: Any, query: Any) -> Any:
        server = Servers.get_server(self, query)
        shared = {name: getattr(server, name) for name in ServerTarget.__struct_fields__ if hasattr(server, name)}
        return ServerTarget(**shared, launched=server.launched_at is not None)

    def update_server(self: Any, update: Any) -> Any:
        return self._change(self._find(update.uuid, update.scope),
                            **{name: getattr(update, name) for name in update.fields})

    def order_server(self: Any, order: Any) -> None:
        self._begin(order.action, order, **({"deleted": True} if order.action == "delete" else {}))

    def lock_server(self: Any, change: Any) -> None:
        self._change(self._find(change.uuid), locked=change.by is not None, locked_by=change.by,
                     locked_reason=change.reason)

    def change_metadata(self: Any, change: Any) -> Any:
        server = self._find(change.uuid)
        held = {} if change.replace else dict(server.metadata)
        if not held.keys() >= {*change.delete}:
            raise errors.NotFound("Metadata item was not found")
        kept = {key: value for key, value in held.items() if key not in change.delete}
        return self._change(server, metadata={**kept, **change.items}).metadata

    def get_console_output(self: Any, query: Any) -> Any:
        lines = self.console.splitlines(keepends=True)
        return "".join(lines if query.length is None else lines[len(lines) - query.length:])

    def list_actions(self: Any, query: Any) -> Any:
        self._find(query.server_uuid, Scope(project_id=query.project_id), query.with_deleted)
        return tuple(action for action in self.actions if action.server_uuid == query.server_uuid)[:query.limit]

    def get_action(self: Any, query: Any) -> Any:
        return first((action for action in self.actions if (action.server_uuid, action.request_id) == (
            query.server_uuid, query.request_id)), f"Action for request_id {query.request_id}")


class Life:
    def rebuild_server(self: Any, order: Any) -> Any:
        """Rebuild a server; the answer shows it during the rebuild."""
        self._begin("rebuild", order, image_id=order.image_id, vm_state=VmState.ACTIVE,
                    **{name: getattr(order, name) for name in order.fields if name in REBUILT})
        return replace(self.servers[order.uuid], task_state=TaskState.REBUILDING)

    def resize_server(self: Any, order: Any) -> None:
        if order.flavor_id == self._find(order.uuid).flavor.flavorid:
            raise errors.Invalid("When resizing, instances must change flavor!")
        self._begin("resize", order)

    def create_image(self: Any, order: Any) -> Any:
        self._begin("createImage", order)
        return str(uuid.uuid4())

    def create_backup(self: Any, order: Any) -> Any:
        self._begin("createBackup", order)
        return str(uuid.uuid4()) if order.rotation else ""


class Parts:
    def change_tags(self: Any, change: Any) -> Any:
        server = self._find(change.uuid)
        now = set(server.tags)
        if not now.issuperset(change.remove):
            raise errors.NotFound(f"Server {server.uuid} has no tag '{change.remove[0]}'")
        tags = tuple(sorted((set() if change.replace else now - set(change.remove)) | set(change.add)))
        self._change(server, tags=tags)
        return TagSet(tags=tags, changed=set(tags) != now)

    def get_server_password(self: Any, query: Any) -> Any:
        server = self._find(query.uuid, query.scope)
        return ServerPassword(project_id=server.project_id, user_id=server.user_id,
                              password=self.passwords.get(query.uuid, ""))

    def clear_server_password(self: Any, uuid: Any) -> None:
        self.passwords.pop(uuid, None)

    def get_server_topology(self: Any, query: Any) -> Any:
        server = self._find(query.uuid, query.scope)
        return ServerTopology(project_id=server.project_id, user_id=server.user_id)

    def reset_state(self: Any, reset: Any) -> None:
        self._change(self._find(reset.uuid), vm_state=VmState(reset.state), task_state=None)

    def external_events(self: Any, events: Any) -> Any:
        return (200,) * len(events)


class Migrations:
    def list_migrations(self: Any, query: Any) -> Any:
        held = [move for move in self.migrations if query.server_uuid in (None, move.server_uuid)]
        return tuple(after(query.page.marker, held, "uuid")[:query.page.limit])

    def list_server_migrations(self: Any, query: Any) -> Any:
        return self._of_server(query, [move for move in self.migrations if move.live])

    def get_server_migration(self: Any, query: Any, migration_id: Any) -> Any:
        found = self._of_server(query, [move for move in self.migrations if move.id == migration_id])
        first(found.migrations, f"Migration {migration_id}")
        return found

    def _of_server(self: Any, query: Any, moves: Any) -> Any:
        server = self._find(query.uuid, query.scope)
        return ServerMigrations(project_id=server.project_id, user_id=server.user_id, migrations=tuple(
            move for move in moves if move.server_uuid == server.uuid))
