"""A conductor over hosts with servers that move in made-up time, for ``nova-manage host drain``."""

from __future__ import annotations

import dataclasses
import datetime
import itertools
from collections.abc import Callable
from typing import Any

import msgspec

from nova import context, errors
from nova.manage.host_drain import DrainClock
from nova.model.base import Scope, utcnow
from nova.model.flavor.flavors import Flavor
from nova.model.host.services import PendingCleanup, Service, ServiceQuery, ServiceUpdate
from nova.model.server.actions import ActionQuery, InstanceAction
from nova.model.server.migrations import Migration, MigrationQuery
from nova.model.server.server_orders import LiveMigrateServer, MigrateServer
from nova.model.server.servers import ServerDetail, ServerListQuery, ServerOrder, ServerPage
from nova.model.server.states import TaskState, VmState
from nova.rpc.contracts.conductor import ConductorRPC
from tests.fakes.contract import ContractFake

BEGAN = datetime.datetime(2026, 1, 1)


class MadeUpClock(DrainClock):
    """Its time passes only while somebody sleeps."""

    def __init__(self) -> None:
        self.now = 0.0
        self.asleep: Callable[[], None] = lambda: None

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds
        self.asleep()

    def stamp(self) -> str:
        return f"{self.now:08.1f}"


@dataclasses.dataclass
class Running:
    """A move under way: when it ends, and how (a reason: it fails)."""

    ends: float
    action: InstanceAction
    end: Callable[[], None]
    fails: str | None = None


class DrainedConductor(ContractFake, contract=ConductorRPC):
    """Servers move to ``target``; each move takes ``seconds``."""

    def __init__(self, clock: MadeUpClock, seconds: float = 10.0, target: str = "h2") -> None:
        super().__init__()
        self.clock, self.seconds, self.target = clock, seconds, target
        clock.asleep = self._settle
        self.servers: dict[str, ServerDetail] = {}
        self.services = [Service(id=1, uuid="s1", host="h1", binary="nova-compute", up=True),
                         Service(id=2, uuid="s2", host="h2", binary="nova-compute", up=True)]
        self.actions: dict[str, list[InstanceAction]] = {}
        self.migrations: list[Migration] = []
        self.debts: list[PendingCleanup] = []
        self.running: dict[str, Running] = {}
        self.fails: dict[str, str] = {}  # uuid -> why its move fails
        self.refuses: dict[str, errors.NovaError] = {}  # uuid -> how its order is refused
        self.silent: list[str] = []  # calls (by method) that get no answer, each once
        self.forgets: set[str] = set()  # methods whose calls are lost on the way when they get no answer
        self.orders: list[tuple[str, str, str | None]] = []  # (what, server, host asked for)
        self.crossing: list[bool] = []  # whether cold moves may leave the cell
        self.most = 0  # moves at one time
        self._ids = itertools.count(1)

    # -- what is there

    def add(self, vm_state: VmState = VmState.ACTIVE, host: str = "h1", **fields: Any) -> str:
        number = len(self.servers) + 1
        uuid = f"00000000-0000-0000-0000-{number:012d}"
        self.servers[uuid] = ServerDetail(**{
            "uuid": uuid, "id": number, "name": f"vm{number}", "project_id": "demo", "user_id": "joe",
            "created_at": BEGAN, "vm_state": vm_state, "host": host, **fields,
            "flavor": Flavor(flavorid="1", name="m1", memory_mb=512, vcpus=1, root_gb=1)})
        return uuid

    def change(self, uuid: str, **fields: Any) -> None:
        self.servers[uuid] = msgspec.structs.replace(self.servers[uuid], **fields)

    def on(self, host: str) -> set[str]:
        return {uuid for uuid, server in self.servers.items() if server.host == host}

    def was_done(self, uuid: str, action: str, user_id: str | None) -> None:
        """It was done once, by this user."""
        self._record(uuid, action, user_id=user_id, request_id="req-before", finished_at=utcnow())

    def moved(self, uuid: str, kind: str = "migration", status: str = "finished") -> None:
        """A cold move from h1; a finished one waits for its confirmation."""
        self.migrations.append(Migration(id=len(self.migrations) + 1, uuid=f"m{uuid}", server_uuid=uuid, type=kind,
                                         status=status, source_compute="h1", created_at=BEGAN))

    # -- reads

    def list_services(self, query: ServiceQuery) -> tuple[Service, ...]:
        return tuple(one for one in self.services if query.host in (None, one.host))

    def list_debts(self, host: str | None) -> tuple[PendingCleanup, ...]:
        return tuple(one for one in self.debts if host in (None, one.host))

    def list_servers(self, query: ServerListQuery) -> ServerPage:
        self._heard("list_servers")
        assert query.scope == Scope() and query.soft_deleted
        condition, = query.conditions
        by_host = condition.column == "host"
        wanted = [server for server in self.servers.values()
                  if (server.host == condition.value if by_host else server.uuid in condition.values)]
        if query.page.marker:
            names = [server.uuid for server in wanted]
            wanted = wanted[names.index(query.page.marker) + 1:]
        return ServerPage(servers=tuple(wanted[:min(3, query.page.limit or 3)]))

    def list_migrations(self, query: MigrationQuery) -> tuple[Migration, ...]:
        return tuple(move for move in self.migrations if move.source_compute == query.source_compute
                     and move.status == query.status and query.type in (None, move.type))

    def list_actions(self, query: ActionQuery) -> tuple[InstanceAction, ...]:
        return tuple(reversed(self.actions.get(query.server_uuid, [])))

    # -- orders

    def update_service(self, update: ServiceUpdate) -> Service:
        for number, one in enumerate(self.services):
            if one.uuid == update.uuid:
                self.services[number] = msgspec.structs.replace(
                    one, disabled=update.disabled, disabled_reason=update.disabled_reason)
                return self.services[number]
        raise errors.NotFound("no such service")

    def live_migrate_server(self, order: LiveMigrateServer) -> None:
        self._begin("live-migration", order.uuid, order.host, TaskState.MIGRATING, {"host": order.host or self.target})

    def migrate_server(self, order: MigrateServer) -> None:
        self.crossing.append(order.cross_cell)
        self._begin("migrate", order.uuid, order.host, TaskState.RESIZE_MIGRATING,
                    {"host": order.host or self.target, "vm_state": VmState.RESIZED})

    def order_server(self, order: ServerOrder) -> None:
        if order.action == "shelveOffload":
            self._begin(order.action, order.uuid, None, TaskState.SHELVING_OFFLOADING,
                        {"host": None, "vm_state": VmState.SHELVED_OFFLOADED})
        else:
            assert order.action == "confirmResize" and self.servers[order.uuid].vm_state == VmState.RESIZED
            self._begin(order.action, order.uuid, None, None, {"vm_state": VmState.STOPPED})

    def _begin(self, action: str, uuid: str, host: str | None, task: TaskState | None, after: dict[str, Any]) -> None:
        self.orders.append((action, uuid, host))
        if action in self.forgets and action in self.silent:
            self._heard(action)
        if uuid in self.refuses:
            raise self.refuses[uuid]
        if self.servers[uuid].task_state is not None or uuid in self.running:
            raise errors.WrongState("it is busy")
        recorded = self._record(uuid, action)
        self.change(uuid, task_state=task)
        seconds = 1.0 if action == "confirmResize" else self.seconds
        self.running[uuid] = Running(self.clock.now + seconds, recorded,
                                     lambda: self.change(uuid, task_state=None, **after), self.fails.get(uuid))
        self.most = max(self.most, len(self.running))
        self._heard(action)

    def _record(self, uuid: str, action: str, **fields: Any) -> InstanceAction:
        who = context.current()
        made = InstanceAction(**{"id": next(self._ids), "action": action, "server_uuid": uuid, "user_id": who.user_id,
                                 "request_id": who.request_id, "started_at": utcnow(), **fields})
        self.actions.setdefault(uuid, []).append(made)
        return made

    def _heard(self, method: str) -> None:
        if method in self.silent:
            self.silent.remove(method)
            raise errors.Unavailable("no conductor answered")

    def _settle(self) -> None:
        """What has had its time ends."""
        for uuid, one in list(self.running.items()):
            if one.ends > self.clock.now:
                continue
            del self.running[uuid]
            over = msgspec.structs.replace(one.action, finished_at=utcnow(), fault=one.fails,
                                           message="Error" if one.fails else None)
            self.actions[uuid] = [over if action.id == over.id else action for action in self.actions[uuid]]
            if one.fails:
                self.change(uuid, task_state=None)
            else:
                one.end()
