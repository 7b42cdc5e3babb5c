"""Events of ConductorRPC calls that change a resource directly: a table, by the call's name.

The calls themselves do not know about notifications: a call in the table is wrapped when the service is assembled.
Events with phases send a start before the call; a failed call sends ``compute.exception`` instead of its end.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import types
import uuid as uuids
from collections.abc import Callable
from typing import Any, NamedTuple

import msgspec

from nova import context, errors, failures
from nova.conductor.engine.announce.best_effort import facts, quietly, read
from nova.conductor.engine.announce.resources import once, server
from nova.conductor.engine.deps import Deps
from nova.db import flavors, keypairs
from nova.db.host import aggregates, services
from nova.db.host.service_rows import ServiceRow
from nova.db.server import server_groups
from nova.model.base import Scope
from nova.model.flavor.flavors import Flavor
from nova.model.host.aggregates import ZONE, Aggregate, AggregateUpdate, NewAggregate
from nova.model.host.services import Service, ServiceQuery
from nova.model.server.keypairs import Keypair, NewKeypair
from nova.model.server.server_groups import ServerGroup, hinted
from nova.model.server.server_parts import StateReset, TagChange, TagSet
from nova.model.server.servers import CreatedServers, LockChange, NewServer, ServerDetail, ServerUpdate
from nova.notifications.facts import Failure, States, Who
from nova.notifications.kinds import KINDS

#: The subject of an event, as the calls have it: a value, a row, or a stand-in for a row that is being created.
Subject = Any
Look = Callable[..., Subject]  # (deps, the call's arguments ...) -> a subject


class Row(NamedTuple):
    """The notifications of a call. ``before`` and ``after`` return the subjects of the start and the end; ``after``
    gets the call's result as its second argument. Without ``after``, the end has the subject of the start. ``tell``
    sends everything itself, with all three."""

    event: str | Callable[..., str] = ""
    before: Look | None = None
    after: Look | None = None
    tell: Callable[..., None] | None = None


def announced(deps: Deps, name: str, method: Callable[..., object]) -> Callable[..., object]:
    """Return the call, wrapped if it has notifications."""
    row = CALLS.get(name)
    if row is None:
        return method
    bind = inspect.signature(method).bind

    @functools.wraps(method)
    def call(*args: object, **kwargs: object) -> object:
        if not deps.notifier.on:
            return method(*args, **kwargs)
        return _Call(deps, row, bind(*args, **kwargs).args).run(lambda: method(*args, **kwargs))
    return call


class _Call:
    """A call whose start and end are notified."""

    def __init__(self, deps: Deps, row: Row, args: tuple[object, ...]) -> None:
        self.deps, self.row, self.args = deps, row, args
        self.event = row.event(*args) if callable(row.event) else row.event
        self.subject: Any = None

    def run(self, method: Callable[[], object]) -> object:
        self._before()
        with failures.reported_to(self._failed, on=errors.NovaError):
            result = method()
        self._after(result)
        return result

    @property
    def _phased(self) -> bool:
        return bool(self.event) and "start" in KINDS[self.event].phases

    @quietly
    def _before(self) -> None:
        if self.row.before is not None:
            with contextlib.suppress(errors.NotFound):  # the call raises it itself
                self.subject = self.row.before(self.deps, *self.args)
        if self._phased:
            once(self.deps, self.event, lambda: self.subject, "start")

    @quietly
    def _after(self, result: object) -> None:
        if self.row.tell is not None:
            self.row.tell(self.deps, self.subject, result, *self.args)
            return
        after = self.row.after(self.deps, result, *self.args) if self.row.after is not None else self.subject
        once(self.deps, self.event, lambda: after, "end" if self._phased else "")

    @quietly
    def _failed(self, error: errors.NovaError) -> None:
        """Send ``compute.exception`` for operators' resources and keys; a refused action on a server is not
        reported."""
        if not self.event:
            return
        failure = Failure.of(error)
        once(self.deps, "compute.exception", lambda: failure)


# -- subjects before and after the call

def _result(_world: Deps, result: object, *_args: object) -> object:
    return result


def _keypair_event(keypair: NewKeypair) -> str:
    return "keypair.create" if keypair.generated else "keypair.import"


def _new_keypair(_world: Deps, keypair: NewKeypair) -> types.SimpleNamespace:
    """Return a stand-in: an imported keypair has no fingerprint yet, and a generated one no key."""
    return types.SimpleNamespace(user_id=keypair.user_id, name=keypair.name, type=keypair.type, fingerprint=None,
                                 public_key=None if keypair.generated else keypair.public_key)


def _keypair(deps: Deps, user_id: str, name: str) -> Keypair:
    with deps.api.reading() as tx:
        return keypairs.get(tx, user_id, name)


def _flavor(deps: Deps, flavorid: str, *_args: object) -> Flavor:
    with deps.api.reading() as tx:
        return flavors.get(tx, flavorid, Scope())


def _flavor_now(deps: Deps, _result: object, flavorid: str, *_args: object) -> Flavor:
    return _flavor(deps, flavorid)


def _aggregate(deps: Deps, key: int, *_args: object) -> Aggregate:
    with deps.api.reading() as tx:
        return aggregates.get(tx, key)


def _new_aggregate(_world: Deps, new: NewAggregate) -> types.SimpleNamespace:
    return types.SimpleNamespace(name=new.name, metadata={ZONE: new.availability_zone} if new.availability_zone else {})


def _renamed(deps: Deps, update: AggregateUpdate) -> Aggregate:
    """Return the aggregate with its requested name, for the start of a change."""
    now = _aggregate(deps, update.id)
    return msgspec.structs.replace(now, name=update.name) if update.name is not None else now


def _group(deps: Deps, uuid: str, scope: Scope) -> ServerGroup:
    with deps.api.reading() as tx:
        return server_groups.get(tx, uuid, scope)


def _service_row(deps: Deps, query: ServiceQuery) -> ServiceRow | None:
    with deps.cell.reading() as tx:
        rows = services.select(tx, query)
    return rows[0][0] if rows else None


def _service_now(deps: Deps, result: Service, *_args: object) -> ServiceRow | None:
    return _service_row(deps, ServiceQuery(uuid=result.uuid))


class _Before(NamedTuple):
    name: str
    vm_state: str
    task_state: str | None


def _states_before(deps: Deps, change: ServerUpdate | StateReset) -> _Before | None:
    """Return the server's row if state changes are notified."""
    return _server_row(deps, change) if deps.notifier.options.state_changes else None


def _server_row(deps: Deps, change: ServerUpdate | StateReset) -> _Before | None:
    found = read(deps, [change.uuid]).get(change.uuid)
    return _Before(found.row.name, found.row.vm_state, found.row.task_state) if found else None


def _server_facts(deps: Deps, order: Subject) -> Subject:
    """Return a server's facts, as in the notifications of its actions."""
    found = read(deps, [order.uuid]).get(order.uuid)
    return facts(deps, found, Who.of(context.current())) if found else None


# -- notifications of another form

def registered(deps: Deps, host: str, binary: str) -> None:
    """Notify that a service has registered for the first time."""
    once(deps, "service.create", lambda: _service_row(deps, ServiceQuery(host=host, binary=binary,
                                                                           hidden=True)))


def _lock(deps: Deps, _before: None, _result: None, change: LockChange) -> None:
    server(deps, "instance.lock" if change.by else "instance.unlock", change.uuid)


def _tags(deps: Deps, _before: None, _result: TagSet, change: TagChange) -> None:
    server(deps, "instance.update", change.uuid)


def _renamed_server(deps: Deps, before: _Before | None, _result: ServerDetail, update: ServerUpdate) -> None:
    """Notify a new name if state changes are notified."""
    if before is not None and "name" in update.fields and before.name != update.name:
        server(deps, "instance.update", update.uuid, old_name=before.name)


def _reset(deps: Deps, before: _Before | None, _result: None, reset: StateReset) -> None:
    after = _server_row(deps, reset) if before is not None else None
    if before is not None and after is not None:
        server(deps, "instance.update", reset.uuid,
               States(before.vm_state, after.vm_state, before.task_state, after.task_state))


def _joined(deps: Deps, _before: None, _result: CreatedServers, order: NewServer) -> None:
    """Notify that servers were created in a group: one time, with all members of the group."""
    uuid = hinted(order.scheduler_hints)
    if uuid is not None:  # the create has checked that the caller may use the group
        once(deps, "server_group.add_member", lambda: _group(deps, str(uuids.UUID(str(uuid))), Scope()))


#: call of ConductorRPC -> its notifications
CALLS: dict[str, Row] = {
    "create_keypair": Row(_keypair_event, _new_keypair, _result),
    "delete_keypair": Row("keypair.delete", _keypair),
    "create_flavor": Row("flavor.create", after=_result),
    "update_flavor": Row("flavor.update", after=_result),
    "set_flavor_specs": Row("flavor.update", after=_flavor_now),
    "delete_flavor_spec": Row("flavor.update", after=_flavor_now),
    "change_flavor_access": Row("flavor.update", after=_flavor_now),
    "delete_flavor": Row("flavor.delete", _flavor),
    "create_aggregate": Row("aggregate.create", _new_aggregate, _result),
    "update_aggregate": Row("aggregate.update_prop", _renamed, _result),
    "set_aggregate_metadata": Row("aggregate.update_metadata", _aggregate, _result),
    "delete_aggregate": Row("aggregate.delete", _aggregate),
    "add_aggregate_host": Row("aggregate.add_host", _aggregate, _result),
    "remove_aggregate_host": Row("aggregate.remove_host", _aggregate, _result),
    "create_server_group": Row("server_group.create", after=_result),
    "delete_server_group": Row("server_group.delete", _group),
    "create_servers": Row(tell=_joined),
    "update_service": Row("service.update", after=_service_now),
    "delete_service": Row("service.delete", _service_row),
    "lock_server": Row(tell=_lock),
    "change_tags": Row(tell=_tags),
    "update_server": Row(before=_states_before, tell=_renamed_server),
    "reset_state": Row(before=_states_before, tell=_reset),
    "abort_live_migration": Row("instance.live_migration_abort", _server_facts),
    "force_live_migration": Row("instance.live_migration_force_complete", _server_facts),
}
