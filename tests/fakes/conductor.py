"""A conductor for the API's tests, with real state in memory. A noun's part is a class of its own here or beside."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from nova import context, errors
from nova.model.actions import ActionQuery, InstanceAction
from nova.model.base import Scope, utcnow
from nova.model.flavors import Flavor
from nova.model.servers import (
    ConsoleQuery,
    CreatedServers,
    LockChange,
    MetadataChange,
    NewServer,
    ServerDetail,
    ServerListQuery,
    ServerOrder,
    ServerPage,
    ServerQuery,
    ServerSummary,
    ServerTarget,
    ServerUpdate,
)
from nova.model.states import ACTIONS, TaskState, VmState, refusal
from nova.rpc.contracts.conductor import ConductorRPC
from nova.rpc.interface import Interface, Method
from tests.fakes.conductor_aggregates import Aggregates
from tests.fakes.conductor_flavors import Flavors
from tests.fakes.conductor_floating import FloatingOfFake
from tests.fakes.conductor_hosts import Hosts
from tests.fakes.conductor_interfaces import ServerInterfaces
from tests.fakes.conductor_life import ServerLife
from tests.fakes.conductor_networks import NetworkPools
from tests.fakes.conductor_parts import Migrations, ServerGroups, ServerParts
from tests.fakes.conductor_projects import Keypairs, Quotas
from tests.fakes.conductor_proxies import Images, Networks
from tests.fakes.conductor_security_groups import SecurityGroupsOfFake
from tests.fakes.conductor_usage import Usage

replace = msgspec.structs.replace
EVERYTHING = Scope()


def complete(contract: type[Interface]) -> Callable[[type], type]:
    """Class decorator: what the fake doesn't have answers NotSupported, so that it keeps the whole contract."""

    def fill(cls: type) -> type:
        for name, method in contract.methods.items():
            if not hasattr(cls, name):
                setattr(cls, name, _missing(method))
        return cls

    return fill


def _missing(method: Method) -> Any:
    def refuse(self: Any, *args: Any, **kwargs: Any) -> Any:
        raise errors.NotSupported(f"the fake conductor has no {method.name}")

    refuse.__signature__ = method.signature  # type: ignore[attr-defined]
    refuse.__annotations__ = {parameter.name: parameter.annotation for parameter in
                              list(method.signature.parameters.values())[1:]}
    return refuse


class Servers:
    """Servers whose actions end at once. ``orders``, ``queries`` and ``created`` keep what the API asked for."""

    def __init__(self) -> None:
        super().__init__()
        self.servers: dict[str, ServerDetail] = {}
        self.actions: list[InstanceAction] = []
        self.orders: list[ServerOrder] = []
        self.queries: list[ServerListQuery] = []
        self.looked_at: list[ServerQuery] = []
        self.created: list[NewServer] = []
        self.updates: list[ServerUpdate] = []
        self.console = "login: \n"

    def add_server(self, **fields: Any) -> ServerDetail:
        values: dict[str, Any] = {
            "uuid": str(uuid.uuid4()), "id": len(self.servers) + 1, "name": "vm", "project_id": "demo",
            "user_id": "demo", "created_at": utcnow(), "launched_at": utcnow(), "vm_state": VmState.ACTIVE,
            "host": "host1", "node": "host1", "flavor": Flavor(flavorid="1", name="m1", memory_mb=512, vcpus=1,
                                                              root_gb=1)}
        server = ServerDetail(**{**values, **fields})
        self.servers[server.uuid] = server
        return server

    def _find(self, uuid: str, scope: Scope = EVERYTHING, with_deleted: bool = False) -> ServerDetail:
        server = self.servers.get(uuid)
        if (server is None or scope.project_id not in (None, server.project_id)
                or (server.deleted and not with_deleted)):
            raise errors.NotFound(f"Instance {uuid} could not be found.")
        return server

    def create_servers(self, order: NewServer) -> CreatedServers:
        self.created.append(order)
        caller = context.current()
        made = [self.add_server(name=order.name, vm_state=VmState.BUILDING, task_state=TaskState.SCHEDULING,
                                project_id=caller.project_id, user_id=caller.user_id, launched_at=None, host=None,
                                node=None, metadata=order.metadata, reservation_id="r-fake")
                for _ in range(order.max_count)]
        return CreatedServers(reservation_id="r-fake", uuids=tuple(server.uuid for server in made))

    def get_server(self, query: ServerQuery) -> ServerDetail:
        self.looked_at.append(query)
        server = self._find(query.uuid, query.scope, query.with_deleted)
        if server.unknown and not query.with_unknown:
            raise errors.Unavailable("The database does not answer")
        return server

    def list_servers(self, query: ServerListQuery) -> ServerPage:
        self.queries.append(query)
        held = [server for server in self.servers.values() if query.scope.project_id in (None, server.project_id)]
        if any(server.unknown for server in held) and query.silent_cells != "show":
            if query.silent_cells == "skip":
                return ServerPage()
            raise errors.Unavailable("The database does not answer")
        held.reverse()
        uuids = [server.uuid for server in held]
        if query.page.marker is not None:
            if query.page.marker not in uuids:
                raise errors.Invalid(f"marker [{query.page.marker}] not found")
            held = held[uuids.index(query.page.marker) + 1:]
        held = held[:query.page.limit]
        if query.detail:
            return ServerPage(servers=tuple(held))
        return ServerPage(summaries=tuple(ServerSummary(uuid=server.uuid, name=server.name, unknown=server.unknown)
                                          for server in held))

    def get_target(self, query: ServerQuery) -> ServerTarget:
        server = self._find(query.uuid, query.scope, query.with_deleted)
        if server.unknown:
            raise errors.Unavailable("The database does not answer")
        return ServerTarget(uuid=server.uuid, project_id=server.project_id, user_id=server.user_id, host=server.host,
                            node=server.node, vm_state=server.vm_state, task_state=server.task_state,
                            power_state=server.power_state, locked=server.locked, locked_by=server.locked_by,
                            launched=server.launched_at is not None, key_name=server.key_name)

    def update_server(self, update: ServerUpdate) -> ServerDetail:
        self.updates.append(update)
        server = self._find(update.uuid, update.scope)
        changed = replace(server, **{name: getattr(update, name) for name in update.fields})
        self.servers[server.uuid] = changed
        return changed

    def order_server(self, order: ServerOrder) -> None:
        server, action = self._find(order.uuid), ACTIONS[order.action]
        reason = refusal(action, server.vm_state, server.task_state, server.launched_at is not None)
        if reason is not None:
            raise errors.WrongState(f"Cannot '{order.action}' instance {order.uuid} while it is in "
                                    f"{reason.attribute} {reason.value}")
        self.orders.append(order)
        if action.result is not None:
            self.servers[server.uuid] = replace(server, vm_state=action.result, deleted=order.action == "delete")

    def lock_server(self, change: LockChange) -> None:
        server = self._find(change.uuid)
        self.servers[server.uuid] = replace(server, locked=change.by is not None, locked_by=change.by,
                                            locked_reason=change.reason)

    def change_metadata(self, change: MetadataChange) -> Mapping[str, str]:
        server = self._find(change.uuid)
        held = {} if change.replace else dict(server.metadata)
        for key in change.delete:
            if held.pop(key, None) is None:
                raise errors.NotFound("Metadata item was not found")
        held.update(change.items)
        self.servers[server.uuid] = replace(server, metadata=held)
        return held

    def get_console_output(self, query: ConsoleQuery) -> str:
        lines = self.console.splitlines(keepends=True)
        return "".join(lines if query.length is None else lines[len(lines) - query.length:])

    def list_actions(self, query: ActionQuery) -> tuple[InstanceAction, ...]:
        self._find(query.server_uuid, Scope(project_id=query.project_id), query.with_deleted)
        held = [action for action in self.actions if action.server_uuid == query.server_uuid]
        return tuple(held[:query.limit])

    def get_action(self, query: ActionQuery) -> InstanceAction:
        for action in self.actions:
            if action.server_uuid == query.server_uuid and action.request_id == query.request_id:
                return action
        raise errors.NotFound(f"Action for request_id {query.request_id} on instance {query.server_uuid} not found")


@complete(ConductorRPC)
class FakeConductor(NetworkPools, FloatingOfFake, SecurityGroupsOfFake, Flavors, ServerParts, ServerLife,
                    ServerInterfaces, Migrations, ServerGroups, Servers, Keypairs, Quotas, Hosts, Aggregates,
                    Networks, Images, Usage):
    """Keeps the whole contract. A new noun: its part as one more base class."""
