"""One interface more of a server that lives, or one less."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping, Sequence

import msgspec

from nova import concurrency, context, decoding, errors
from nova.conductor.engine import waiting
from nova.conductor.engine.begin import begin_on_host, locked, row_of
from nova.conductor.engine.deps import Deps
from nova.conductor.engine.operation import Arguments, Op, Result
from nova.conductor.engine.waiting import LONGEST_PAUSE_S, LOOK_S
from nova.conductor.engine.workflow import Step, Workflow
from nova.conductor.steps.guests import ORDERS, build_order, fence, results_of
from nova.db.operation import operations
from nova.db.server import servers, states
from nova.db.server.server_row import ServerRow
from nova.db.server.states import PerServer
from nova.db.sql.engine import Connection
from nova.db.sql.types import AnyColumn
from nova.model.base import Scope
from nova.model.guest.orders import InterfaceOrder
from nova.model.network.networks import Interface, RequestedNetwork
from nova.model.server.servers import ServerQuery

ATTACH, DETACH = "attach_interface", "detach_interface"
WAIT_S = 50.0  # at most; and no longer than the caller does (by its rpc_response_timeout)
UNDO_WAIT_S = 5.0  # for one that is being taken back: where its host says nothing, that may last


class InterfaceActions:
    """The calls of InterfaceCalls. ``wait_s``: how long an attach may keep its caller waiting; ``undo_wait_s``: for
    one before it that failed."""

    def __init__(self, deps: Deps, wait_s: float = WAIT_S, undo_wait_s: float = UNDO_WAIT_S) -> None:
        self.deps, self._wait_s, self._undo_wait_s = deps, wait_s, undo_wait_s

    def list_interfaces(self, query: ServerQuery) -> tuple[Interface, ...]:
        """In the guest's order. server.NotFound outside the scope; Unavailable: the network service."""
        with self.deps.cell.reading() as tx:
            row = servers.detail_row(tx, query.uuid, query.scope, query.with_deleted)
        return tuple(self.deps.networking.interfaces_now(row))

    def attach_interface(self, server_uuid: str, wish: RequestedNetwork) -> Interface:
        waits_s = min(self._wait_s, context.patience().left_s)
        end = time.monotonic() + waits_s
        try:
            checked = self.deps.networking.check_interface(row_of(self.deps, server_uuid), wish)
        except errors.server.FixedIpInUse as error:  # a create's words, whose code is another
            raise errors.server.InterfaceAddressInUse(None, **error.data) from None
        entry = self._begin(ATTACH, server_uuid, lambda row: AttachInterface(wish=checked), end)
        return self._attached(entry, end, waits_s)

    def detach_interface(self, server_uuid: str, interface_id: str) -> None:
        def arguments(row: ServerRow) -> DetachInterface:
            for one in row.interfaces or ():
                if one.id == interface_id:
                    return DetachInterface(interface=one)
            raise errors.server.NoSuchInterface(server=server_uuid, interface=interface_id)
        self._begin(DETACH, server_uuid, arguments, time.monotonic() + min(self._wait_s, context.patience().left_s))

    def add_fixed_address(self, server_uuid: str, network_id: str) -> None:
        """Done when it answers. NotSupported by the network service in use, or what that raises."""
        self._addresses("add_fixed_address")(server_uuid, network_id)

    def remove_fixed_address(self, server_uuid: str, address: str) -> None:
        """Done when it answers. NotSupported by the network service in use; network.NotItsAddress."""
        self._addresses("remove_fixed_address")(server_uuid, address)

    # -- within

    def _addresses(self, call: str) -> Callable[[str, str], None]:
        """The back end's own way: what it changes of the server's interfaces it writes itself."""
        back_end = self.deps.networking
        found = (getattr(part, call, None) for part in (back_end.networks, getattr(back_end, "single", None)))
        method: Callable[[str, str], None] | None = next(filter(None, found), None)
        if method is None:
            raise errors.NotSupported(f"The network service in use ({self.deps.networking.name}) has no {call}.")
        return method

    def _begin(self, action: str, uuid: str, arguments: Callable[[ServerRow], Arguments], end: float
               ) -> states.Entry:
        """Begin and run it. One at a time a server, in the order in which they come in the end: the states' table lets
        an action overtake these, and they must not overtake each other."""
        def write(tx: Connection) -> states.Entry | str:
            locked(tx, uuid)
            direction = operations.under_way(tx, uuid, (ATTACH, DETACH))
            return direction or begin_on_host(self.deps, tx, action, uuid, arguments)
        pause = LOOK_S
        while isinstance(entry := self.deps.cell.transact(write), str):
            now, undoing = time.monotonic(), entry == "undo"
            end = min(end, now + self._undo_wait_s) if undoing else end
            if now + pause > end:
                raise errors.server.InterfacesUnsettled(
                    server=uuid) if undoing else errors.server.InterfacesBusy(server=uuid)
            concurrency.sleep(pause)
            pause = min(2 * pause, LONGEST_PAUSE_S)
        self.deps.runner.start([entry])
        return entry

    def _attached(self, entry: states.Entry, end: float, waits_s: float) -> Interface:
        """The interface, once the guest has it; or why it never will."""
        found = waiting.succeeded(self.deps, entry, end, waits_s)
        return self._made(entry, decoding.convert(found.data["interface"], Interface))

    def _made(self, entry: states.Entry, made: Interface) -> Interface:
        """As the server's row has it now; what came after it may have changed it, or taken it away again."""
        with self.deps.cell.reading() as tx:
            row = servers.detail_row(tx, entry.server_uuid, Scope(), True)
        return next((one for one in row.interfaces or () if one.id == made.id), made)


LOG = logging.getLogger(__name__)

class AttachInterface(Arguments):
    """What is asked for, as its back end checked it."""

    wish: RequestedNetwork


class DetachInterface(Arguments):
    """The interface that is to go; None: of an attaching, which :class:`OperationProgress` tells."""

    interface: Interface | None = None


def interface_of(op: Op) -> Interface | None:
    """What the operation is about; None before it is known."""
    return op.progress.interface or op.asked(DetachInterface).interface


def detach_at_once(deps: Deps) -> Callable[[str, str], None]:
    """What begins to detach a port (server, port) and waits for nobody: where Neutron says that it is gone."""
    return InterfaceActions(deps, wait_s=0.0, undo_wait_s=0.0).detach_interface


class TakeInterface(Step):
    """The server has one more interface, the last in the guest's order; undo: it goes back to where it came from."""

    uses = ("networking",)

    def within(self, tx: Connection, deps: Deps, ops: Sequence[Op]) -> Mapping[str, AnyColumn]:
        added = {}
        for op in ops:
            taken = deps.networking.take_interface(tx, op, op.asked(AttachInterface).wish)
            if taken is not None:
                added[op.uuid] = _with(op, taken)
                op.see(interfaces=added[op.uuid])
        return {"interfaces": PerServer(added)} if added else {}

    def do(self, deps: Deps, ops: Sequence[Op]) -> Sequence[Result]:
        return [self._make(deps, op) for op in ops]

    @staticmethod
    def _make(deps: Deps, op: Op) -> Result:
        try:
            made = deps.networking.make_interface(op, op.asked(AttachInterface).wish)
        except errors.daemon.WorkflowNotYet:
            raise  # it may be there, and nobody can say: whoever goes on finds out
        except errors.NovaError as error:
            return error
        before, after = op.server.interfaces or (), _with(op, made)
        if after != before:
            op.write(interfaces=after)
        return {}

    def undo_within(self, tx: Connection, deps: Deps, ops: Sequence[Op]) -> Mapping[str, object]:
        return _drop(tx, deps, ops)

    def undo(self, deps: Deps, ops: Sequence[Op]) -> None:
        _remove(deps, ops)


class DropInterface(Step):
    """The server's row has it no more, and its address or port is nobody's (or, a port that was given, free). The
    guest has lost it before: there is no way back."""

    uses = ("networking",)

    def within(self, tx: Connection, deps: Deps, ops: Sequence[Op]) -> Mapping[str, AnyColumn]:
        return _drop(tx, deps, ops)

    def do(self, deps: Deps, ops: Sequence[Op]) -> Sequence[Result]:
        _remove(deps, ops)
        return [{} for _ in ops]


class InterfaceStep(Step):
    """An order to the guest's host about the operation's interface."""

    def send(self, deps: Deps, op: Op, plugged: bool) -> Result:
        """The guest shall have it, or not: with all else that it has."""
        host, interface = op.server.host, interface_of(op)
        if not host:
            return errors.server.NoHost(server=op.uuid)
        if interface is None:
            return errors.Bug(f"operation {op.entry.id} does not know its interface")
        call = deps.compute.attach_interfaces if plugged else deps.compute.detach_interfaces
        [result] = results_of([op], call(host, (interface_order(deps, op, interface, plugged),)))
        return result if isinstance(result, errors.NovaError) else {**result, "host": host}


class PlugInterface(InterfaceStep):
    """The guest has it. Undo: it has not; a host that can't be told keeps the operation waiting, for the address must
    not be another's while the guest may use it."""

    uses = ORDERS
    event = "compute_attach_interface"

    def do(self, deps: Deps, ops: Sequence[Op]) -> Sequence[Result]:
        return [self.send(deps, op, plugged=True) for op in ops]

    def undo(self, deps: Deps, ops: Sequence[Op]) -> None:
        for op in ops:
            if interface_of(op) is None or not op.server.host:
                continue
            result = self.send(deps, op, plugged=False)
            if isinstance(result, errors.NovaError) and not isinstance(result, errors.NotFound | errors.NotSupported):
                raise result


class UnplugInterface(InterfaceStep):
    """The guest has given it up; from here on there is no way back. Undo: it has it again, by its host's next start at
    the latest, for the server's row never lost it."""

    uses = ORDERS
    event = "compute_detach_interface"

    def do(self, deps: Deps, ops: Sequence[Op]) -> Sequence[Result]:
        return [self._unplug(deps, op) for op in ops]

    def _unplug(self, deps: Deps, op: Op) -> Result:
        result = self.send(deps, op, plugged=False)
        return result if isinstance(result, errors.NovaError) else {**result, "committed": True}

    def undo(self, deps: Deps, ops: Sequence[Op]) -> None:
        for op in ops:
            if not op.server.host:
                continue
            try:
                result = self.send(deps, op, plugged=True)
            except errors.Unavailable as error:
                result = error
            if isinstance(result, errors.Overtaken):
                raise result
            if isinstance(result, errors.NovaError):
                LOG.warning("an interface that could not be detached may be missing until the guest's next start: %s",
                            result.message, extra={"server": op.uuid})


def interface_order(deps: Deps, op: Op, interface: Interface, plugged: bool) -> InterfaceOrder:
    """``build``: the guest as it is after it."""
    build = build_order(deps, op.server, op, fence(op))
    rest = tuple(one for one in build.interfaces if one.id != interface.id)
    whole = build.interfaces if plugged and len(rest) < len(build.interfaces) else rest
    if plugged and whole is rest:
        whole = (*rest, interface)
    return InterfaceOrder(server_uuid=op.uuid, instance_name=build.instance_name, fence=build.fence,
                          interface=interface, build=msgspec.structs.replace(build, interfaces=whole))


def _with(op: Op, interface: Interface) -> tuple[Interface, ...]:
    """The server's interfaces with this one: in its place where it has one, else behind the others. What an earlier
    try in a transaction that was rolled back had taken is not among them."""
    earlier, current = interface_of(op), tuple(op.server.interfaces or ())
    if earlier is not None and earlier.id != interface.id:
        current = tuple(one for one in current if one.id != earlier.id)
    op.note(interface=interface)
    if any(one.id == interface.id for one in current):
        return tuple(interface if one.id == interface.id else one for one in current)
    return (*current, interface)


def _drop(tx: Connection, deps: Deps, ops: Sequence[Op]) -> Mapping[str, AnyColumn]:
    left = {}
    for op in ops:
        interface = interface_of(op)
        if interface is not None:
            deps.networking.drop_interface(tx, op, interface)
            left[op.uuid] = tuple(one for one in op.server.interfaces or () if one.id != interface.id)
            op.see(interfaces=left[op.uuid])
    return {"interfaces": PerServer(left)} if left else {}


def _remove(deps: Deps, ops: Sequence[Op]) -> None:
    for op in ops:
        interface = interface_of(op)
        if interface is not None:
            deps.networking.remove_interface(op, interface)


ATTACH_INTERFACE = Workflow(
    "attach_interface",
    TakeInterface(),   # an address, or a port, bound on the server's host; undo: given back
    PlugInterface(),   # the guest has it, now or at its next start; undo: unplugged
    asks=AttachInterface,
)

DETACH_INTERFACE = Workflow(
    "detach_interface",
    UnplugInterface(),                                        # the guest gives it up; undo: plugged in again
    DropInterface(),                                          # nobody's, or the user's own port again
    asks=DetachInterface,
)
