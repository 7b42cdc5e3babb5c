"""Interfaces of servers that live: looked at, plugged in, taken out."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from nova import concurrency, context, errors
from nova.conductor.engine.begin import begin_on_host, builtins, locked, row_of
from nova.conductor.engine.deps import World
from nova.conductor.steps.interfaces import INTERFACE, WISH
from nova.db import operations, servers, states
from nova.db.engine import Connection
from nova.model.base import Scope
from nova.model.networks import Interface, RequestedNetwork
from nova.model.servers import ServerQuery

ATTACH, DETACH = "attach_interface", "detach_interface"
WAIT_S = 50.0  # at most; and no longer than the caller does (by its rpc_response_timeout)
LOOK_S, LONGEST_PAUSE_S = 0.02, 0.5
UNDO_WAIT_S = 5.0  # for one that is being taken back: where its host says nothing, that may last


class NoSuchInterface(errors.NotFound):
    code, message = "server.no_such_interface", "Instance {server} has no interface {interface}."


class Busy(errors.Conflict):
    code = "server.interfaces_busy"
    message = "Another interface of instance {server} is being attached or detached: try again when it has ended."


class Unsettled(errors.Conflict):
    code = "server.interfaces_unsettled"
    message = ("An interface could not be attached to instance {server}, and will be taken back when its host answers "
               "again: until then its address stays taken, and no other can be attached or detached.")


class Interrupted(errors.Conflict):
    code = "server.attach_interrupted"
    message = "Attaching an interface to instance {server} was interrupted by another action on it."


class Slow(errors.Unavailable):
    code = "server.attach_slow"
    message = ("Attaching an interface to instance {server} takes longer than {seconds:.0f} s, and goes on: its "
               "actions tell how it ends.")


class Interfaces:
    """The calls of InterfaceCalls. ``wait_s``: how long an attach may keep its caller waiting; ``undo_wait_s``: for
    one before it that failed."""

    def __init__(self, world: World, wait_s: float = WAIT_S, undo_wait_s: float = UNDO_WAIT_S) -> None:
        self.world, self._wait_s, self._undo_wait_s = world, wait_s, undo_wait_s

    def list_interfaces(self, query: ServerQuery) -> tuple[Interface, ...]:
        with self.world.cell.reading() as tx:
            row = servers.detail_row(tx, query.uuid, query.scope, query.with_deleted)
        return tuple(self.world.networking.interfaces_now(row))

    def attach_interface(self, server_uuid: str, wish: RequestedNetwork) -> Interface:
        waits_s = min(self._wait_s, context.patience().left_s)
        end = time.monotonic() + waits_s
        checked = self.world.networking.check_interface(row_of(self.world, server_uuid), wish)
        entry = self._begin(ATTACH, server_uuid, lambda row: {WISH: builtins(checked)}, end)
        return self._attached(entry, end, waits_s)

    def detach_interface(self, server_uuid: str, interface_id: str) -> None:
        def arguments(row: Any) -> Mapping[str, Any]:
            for one in row.interfaces or ():
                if one.id == interface_id:
                    return {INTERFACE: builtins(one)}
            raise NoSuchInterface(server=server_uuid, interface=interface_id)
        self._begin(DETACH, server_uuid, arguments, time.monotonic() + min(self._wait_s, context.patience().left_s))

    def add_fixed_address(self, server_uuid: str, network_id: str) -> None:
        self._addresses("add_fixed_address")(server_uuid, network_id)

    def remove_fixed_address(self, server_uuid: str, address: str) -> None:
        self._addresses("remove_fixed_address")(server_uuid, address)

    # -- within

    def _addresses(self, call: str) -> Callable[[str, str], None]:
        """The back end's own way: what it changes of the server's interfaces it writes itself."""
        back_end = self.world.networking
        found = (getattr(part, call, None) for part in (back_end.networks, getattr(back_end, "single", None)))
        method: Callable[[str, str], None] | None = next(filter(None, found), None)
        if method is None:
            raise errors.NotSupported(f"The network service in use ({self.world.networking.name}) has no {call}.")
        return method

    def _begin(self, action: str, uuid: str, arguments: Callable[[Any], Mapping[str, Any]], end: float
               ) -> states.Entry:
        """Begin and run it. One at a time a server, in the order in which they come in the end: the states' table lets
        an action overtake these, and they must not overtake each other."""
        def write(tx: Connection) -> states.Entry | str:
            locked(tx, uuid)
            direction = operations.under_way(tx, uuid, (ATTACH, DETACH))
            return direction or begin_on_host(self.world, tx, action, uuid, arguments)
        pause = LOOK_S
        while isinstance(entry := self.world.cell.transact(write), str):
            now, undoing = time.monotonic(), entry == "undo"
            end = min(end, now + self._undo_wait_s) if undoing else end
            if now + pause > end:
                raise Unsettled(server=uuid) if undoing else Busy(server=uuid)
            concurrency.sleep(pause)
            pause = min(2 * pause, LONGEST_PAUSE_S)
        self.world.runner.start([entry])
        return entry

    def _attached(self, entry: states.Entry, end: float, waits_s: float) -> Interface:
        """The interface, once the guest has it; or why it never will."""
        pause = LOOK_S
        while True:
            with self.world.cell.reading() as tx:
                found = operations.progress(tx, entry.id)
            if found is None or found.outcome == "overtaken":
                raise Interrupted(server=entry.server_uuid)
            if found.outcome == "success":
                return self._made(entry, found.data)
            if found.outcome is not None or found.direction == "undo":
                raise _fault(found)
            if time.monotonic() + pause > end:
                raise Slow(server=entry.server_uuid, seconds=waits_s)
            concurrency.sleep(pause)
            pause = min(2 * pause, LONGEST_PAUSE_S)

    def _made(self, entry: states.Entry, data: Mapping[str, Any]) -> Interface:
        """As the server's row has it now; what came after it may have changed it, or taken it away again."""
        made = msgspec.convert(data[INTERFACE], Interface)
        with self.world.cell.reading() as tx:
            row = servers.detail_row(tx, entry.server_uuid, Scope(), True)
        return next((one for one in row.interfaces or () if one.id == made.id), made)


def _fault(found: operations.Progress) -> errors.NovaError:
    fault = found.data.get("fault") or {}
    return errors.from_wire(fault.get("kind", "bug"), fault.get("code", errors.Bug.code),
                            fault.get("message") or found.fault or errors.Bug.message, {})


__all__ = ["Busy", "Interfaces", "Interrupted", "NoSuchInterface", "Slow", "Unsettled"]
