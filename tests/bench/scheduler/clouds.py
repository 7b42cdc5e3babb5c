"""Schedulers and the conductor's part of placement in one process: real services, steps and databases, and every call
through the codec both ways, as over a broker. Messages and statements are counted."""

from __future__ import annotations

import itertools
import threading
import time
import uuid
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any, NamedTuple

import sqlalchemy as sa
from sqlalchemy import event

from nova import errors
from nova.conductor.engine.deps import ConductorSettings, Deps
from nova.conductor.engine.operation import Op
from nova.conductor.engine.workflow import Step
from nova.conductor.hosts.feed import Feed
from nova.conductor.steps.placement import ClaimResources, SelectHosts, SelectNextHost
from nova.conf import filter_scheduler, metrics, scheduler
from nova.db.models import api as api_tables
from nova.db.quota import ledger
from nova.db.server.states import Entry
from nova.db.sql.engine import Connection, Database
from nova.model.flavor.flavors import Flavor
from nova.model.host.hosts import HostStates, NodeStamp
from nova.model.image.images import Image
from nova.model.scheduling.decisions import PlacementRequest, Selection
from nova.rpc import codec
from nova.rpc.contracts.scheduler import SchedulerRPC
from nova.rpc.local import LocalBus
from nova.scheduler import service
from tests.fakes.rows import server_value

STEPS = (SelectHosts(), SelectNextHost(), ClaimResources())


def options(module: Any, **fields: Any) -> SimpleNamespace:
    """A section as it is without a configuration file, but for ``fields``."""
    return SimpleNamespace(**{**{one.dest: one.default for one in module.OPTS}, **fields})


def scheduler_settings(**fields: Any) -> service.SchedulerSettings:
    """``fields`` of ``[filter_scheduler]``."""
    return service.SchedulerSettings(options(scheduler), options(filter_scheduler, **fields), 3600.0, options(metrics))


def all_filters() -> list[str]:
    """Every filter there is, but those that ask others or need a setting of their own to say yes."""
    from nova.scheduler.filters import all_filters

    return sorted({one.__name__ for one in all_filters()} - {"MetricsFilter"})


class FromDatabase:
    """What a scheduler asks of the conductor, without the rest of it. ``size``: of the last answer on the wire."""

    def __init__(self, feed: Feed) -> None:
        self._feed = feed
        self.size = 0

    def get_host_states(self, known: tuple[NodeStamp, ...], everything: bool) -> HostStates:
        text = codec.to_text(codec.pack(self._feed.states(known, everything)))
        self.size = len(text)
        return codec.unpack(codec.from_text(text), HostStates)


class Schedulers:
    """Several as one: a request goes to the next of them, what is told to all. Behind ``SchedulerRPC``.

    ``took``: how many servers each request was for, and the seconds inside the scheduler.
    """

    def __init__(self, services: Sequence[service.SchedulerService]) -> None:
        self.services = services
        self.took: list[tuple[int, float]] = []
        self._turn = itertools.cycle(services)

    def select_hosts(self, request: PlacementRequest) -> tuple[Selection, ...]:
        chosen = next(self._turn)
        started = time.perf_counter()
        selections = chosen.select_hosts(request)
        self.took.append((len(request.server_uuids), time.perf_counter() - started))
        return selections

    def update_hosts(self, states: HostStates) -> None:
        for one in self.services:
            one.update_hosts(states)


class Statements:
    """Counts what is sent to a database, without BEGIN and COMMIT."""

    def __init__(self, *databases: Database) -> None:
        self.count = 0
        self.kinds: Counter[str] = Counter()
        for database in databases:
            event.listen(database.engine, "before_cursor_execute", self._note)

    def _note(self, _connection: Any, _cursor: Any, statement: str, *_rest: Any) -> None:
        word = statement.split(None, 1)[0].upper()
        if word not in ("BEGIN", "COMMIT", "ROLLBACK"):
            self.count += 1
            self.kinds[" ".join(statement.split())[:60]] += 1


class Placed(NamedTuple):
    """What became of some servers. ``refused``: claims that found the host taken; the alternate was tried next."""

    placed: int
    refused: int
    failed: int


class Cloud:
    """Schedulers that know the hosts of the databases, and a conductor's deps."""

    def __init__(self, databases: Any, schedulers: int = 1, **filter_options: Any) -> None:
        self.bus = LocalBus()
        self.deps = Deps(api=databases.api, cell=databases.cell, settings=ConductorSettings(), host="bench",
                                  scheduler=self.bus.client(SchedulerRPC), compute=None, network=None, images=None,
                         certs=None)
        self.deps.feed = Feed(self.deps)
        self.source = FromDatabase(self.deps.feed)
        self.services = [service.SchedulerService(self.source, scheduler_settings(**filter_options))
                         for _ in range(schedulers)]
        self.schedulers = Schedulers(self.services)
        self.bus.serve(SchedulerRPC, self.schedulers)
        self.statements = Statements(databases.api, databases.cell)
        self._ids = itertools.count(1)
        self._lock = threading.Lock()

    def start(self) -> None:
        for one in self.services:
            if not one.sweep():
                raise SystemExit("the schedulers could not be fed")

    def asked_for(self, flavor: Flavor, count: int, image: Mapping[str, str] | None = None) -> list[Op]:
        """Servers as admission leaves them: with a row in the ledger, and in the hands of a runner."""
        uuids = [str(uuid.uuid4()) for _ in range(count)]
        self.deps.api.transact(lambda tx: ledger.open_rows(tx, [{
            "server_uuid": one, "project_id": "bench", "user_id": "bench", "vcpus": flavor.vcpus,
            "memory_mb": flavor.memory_mb} for one in uuids]))
        return [self._op(one, flavor, image) for one in uuids]

    def _op(self, server_uuid: str, flavor: Flavor, image: Mapping[str, str] | None) -> Op:
        row = server_value(uuid=server_uuid, project_id="bench", user_id="bench", flavor=flavor, scheduler_hints={},
                           image=Image(id="", properties=image) if image else None)
        with self._lock:
            number = next(self._ids)
        return Op(Entry(id=number, server_uuid=server_uuid, action="create", epoch=1), row)

    def place(self, ops: list[Op]) -> Placed:
        """From the request to committed claims, with the workflow's retries."""
        failed = _apply(STEPS[0], self.deps, ops)
        left = [op for op in ops if op.uuid not in failed]
        lost, placed, refused = len(failed), 0, 0
        while left:
            exhausted = _apply(STEPS[1], self.deps, left)
            lost += len(exhausted)
            left = [op for op in left if op.uuid not in exhausted]
            conflicts = _apply(STEPS[2], self.deps, left) if left else {}
            placed, refused = placed + len(left) - len(conflicts), refused + len(conflicts)
            left = [op for op in left if op.uuid in conflicts]
        return Placed(placed, refused, lost)

    def give_back(self, ops: Sequence[Op]) -> None:
        """As a delete does."""
        for first in range(0, len(ops), 100):
            epochs = {op.uuid: op.entry.epoch for op in ops[first:first + 100]}

            def release(tx: Connection, epochs: dict[str, int] = epochs) -> list[int]:
                changed = ledger.release(tx, epochs, {})
                ledger.close(tx, epochs)
                return changed
            self.deps.feed.after_release(self.deps.api.transact(release))

    def overcommitted(self) -> int:
        """How many providers gave away more than they have."""
        table, given = api_tables.inventories, api_tables.allocations
        query = (sa.select(table.c.provider_id, table.c.total, table.c.allocation_ratio, sa.func.sum(given.c.used))
                 .join_from(table, given, sa.and_(given.c.provider_id == table.c.provider_id,
                                                  given.c.resource_class == table.c.resource_class))
                 .group_by(table.c.provider_id, table.c.resource_class, table.c.total, table.c.allocation_ratio))
        with self.deps.api.reading() as tx:
            return len({key for key, total, ratio, used in tx.execute(query) if used > int(total * ratio)})

    @contextmanager
    def counted(self) -> Iterator[SimpleNamespace]:
        """``statements`` and ``messages`` of what is done within."""
        found = SimpleNamespace(statements=self.statements.count, messages=self.bus.messages)
        yield found
        found.statements = self.statements.count - found.statements
        found.messages = self.bus.messages - found.messages


def _apply(step: Step, deps: Deps, ops: Sequence[Op]) -> dict[str, errors.NovaError]:
    """Do a step as the runner does; the servers for which it failed."""
    failed = {}
    for op, result in zip(ops, step.do(deps, ops), strict=True):
        if isinstance(result, errors.NovaError):
            failed[op.uuid] = result
        else:
            op.note(**result)
    return failed
