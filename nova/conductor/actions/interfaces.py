"""Attach or detach a network interface of an existing server."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping, Sequence

import msgspec

from nova import concurrency, context, decoding, errors, failures
from nova.conductor.engine import operation_wait
from nova.conductor.engine.begin import locked, row_of, start_operation_on_host
from nova.conductor.engine.deps import Deps
from nova.conductor.engine.operation import Arguments, Op, Result
from nova.conductor.engine.operation_wait import LONGEST_PAUSE_S, LOOK_S
from nova.conductor.engine.workflow import Step, Workflow
from nova.conductor.steps.guests import ORDERS, build_order, fence, results_of
from nova.db.operation import operations
from nova.db.server import servers, states
from nova.db.server.server_row import ServerRow
from nova.db.server.states import PerServer
from nova.db.sql.engine import Connection
from nova.model.base import Scope
from nova.model.guest.orders import InterfaceOrder
from nova.model.network.networks import Interface, RequestedNetwork
from nova.model.server.servers import ServerQuery

ATTACH, DETACH = "attach_interface", "detach_interface"
WAIT_S = 50.0  # upper limit; the caller's rpc_response_timeout also limits it
UNDO_WAIT_S = 5.0  # for an attach that is being undone: it may take long if the host does not answer


class InterfaceActions:
    """The calls of InterfaceCalls. ``wait_s``: maximum wait of an attach; ``undo_wait_s``: maximum wait for an earlier
    attach that failed and is being undone."""

    def __init__(self, deps: Deps, wait_s: float = WAIT_S, undo_wait_s: float = UNDO_WAIT_S) -> None:
        self.deps, self._wait_s, self._undo_wait_s = deps, wait_s, undo_wait_s

    def list_interfaces(self, query: ServerQuery) -> tuple[Interface, ...]:
        """Return the server's interfaces in the guest's order. Raises server.NotFound outside the scope, Unavailable if
        the network service does not answer."""
        with self.deps.cell.reading() as tx:
            row = servers.detail_row(tx, query.uuid, query.scope, query.with_deleted)
        return tuple(self.deps.networking.interfaces_now(row))

    def attach_interface(self, server_uuid: str, wish: RequestedNetwork) -> Interface:
        waits_s = min(self._wait_s, context.deadline().left_s)
        end = time.monotonic() + waits_s
        # raised for creates, with another error code
        with failures.replaced(errors.server.FixedIpInUse,
                lambda error: errors.server.InterfaceAddressInUse(None, **error.data)):
            checked = self.deps.networking.check_interface(row_of(self.deps, server_uuid), wish)
        entry = self._begin(ATTACH, server_uuid, lambda row: AttachInterface(wish=checked), end)
        return self._attached(entry, end, waits_s)

    def detach_interface(self, server_uuid: str, interface_id: str) -> None:
        def arguments(row: ServerRow) -> DetachInterface:
            for one in row.interfaces or ():
                if one.id == interface_id:
                    return DetachInterface(interface=one)
            raise errors.server.NoSuchInterface(server=server_uuid, interface=interface_id)
        self._begin(DETACH, server_uuid, arguments, time.monotonic() + min(self._wait_s, context.deadline().left_s))

    def add_fixed_address(self, server_uuid: str, network_id: str) -> None:
        """Add a fixed IP address, before this returns. Raises NotSupported if the network service has no such call."""
        self._addresses("add_fixed_address")(server_uuid, network_id)

    def remove_fixed_address(self, server_uuid: str, address: str) -> None:
        """Remove a fixed IP address, before this returns. Raises NotSupported if the network service has no such call,
        and network.NotItsAddress."""
        self._addresses("remove_fixed_address")(server_uuid, address)

    # -- helpers

    def _addresses(self, call: str) -> Callable[[str, str], None]:
        """Return the network back end's own method, which writes its changes of the server's interfaces itself."""
        back_end = self.deps.networking
        found = (getattr(part, call, None) for part in (back_end.networks, getattr(back_end, "single", None)))
        method: Callable[[str, str], None] | None = next(filter(None, found), None)
        if method is None:
            raise errors.NotSupported(f"The network service in use ({self.deps.networking.name}) lacks {call}.")
        return method

    def _begin(self, action: str, uuid: str, arguments: Callable[[ServerRow], Arguments], end: float
               ) -> states.Entry:
        """Start the action when no other attach or detach runs on the server; waiting requests have no fixed order.

        The state table allows an action to overtake these, but they must not overtake each other.
        """
        def write(tx: Connection) -> states.Entry | str:
            locked(tx, uuid)
            direction = operations.under_way(tx, uuid, (ATTACH, DETACH))
            return direction or start_operation_on_host(self.deps, tx, action, uuid, arguments)
        pause = LOOK_S
        while isinstance(entry := self.deps.transact_together(uuid, write), str):
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
        """Wait until the guest has the interface and return it, or raise the error that the operation failed with."""
        found = operation_wait.wait_for_success(self.deps, entry, end, waits_s)
        return self._made(entry, decoding.convert(found.data["interface"], Interface))

    def _made(self, entry: states.Entry, made: Interface) -> Interface:
        """Return the interface as the server's row has it now: later actions may have changed or removed it."""
        with self.deps.cell.reading() as tx:
            row = servers.detail_row(tx, entry.server_uuid, Scope(), True)
        return next((one for one in row.interfaces or () if one.id == made.id), made)


LOG = logging.getLogger(__name__)

class AttachInterface(Arguments):
    """Arguments of an attach: the request, as the network back end validated it."""

    wish: RequestedNetwork


class DetachInterface(Arguments):
    """Arguments of a detach: the interface to remove. None for an attach, whose :class:`OperationProgress` names it."""

    interface: Interface | None = None


def interface_of(op: Op) -> Interface | None:
    """Return the operation's interface, or None if it is not known yet."""
    return op.progress.interface or op.asked(DetachInterface).interface


def detach_without_waiting(deps: Deps) -> Callable[[str, str], None]:
    """Return a function (server, port) that starts to detach a port without waiting, for ports that Neutron deleted."""
    return InterfaceActions(deps, wait_s=0.0, undo_wait_s=0.0).detach_interface


class TakeInterface(Step):
    """Add an interface to the server, as the last in the guest's order; undo: return it to its source."""

    uses = ("networking",)

    def within(self, tx: Connection, deps: Deps, ops: Sequence[Op]) -> Mapping[str, object]:
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
            raise  # it may exist: the next run of the operation finds out
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
    """Remove the interface from the server's row, and release its address or port (a port of the user becomes free).

    The guest has already lost it, so this step cannot be undone.
    """

    uses = ("networking",)

    def within(self, tx: Connection, deps: Deps, ops: Sequence[Op]) -> Mapping[str, object]:
        return _drop(tx, deps, ops)

    def do(self, deps: Deps, ops: Sequence[Op]) -> Sequence[Result]:
        _remove(deps, ops)
        return [{} for _ in ops]


class InterfaceStep(Step):
    """A step that sends an order about the operation's interface to the guest's host."""

    def send(self, deps: Deps, op: Op, plugged: bool) -> Result:
        """Order the host to plug or unplug the interface; the order describes the whole guest."""
        host, interface = op.server.host, interface_of(op)
        if not host:
            return errors.server.NoHost(server=op.uuid)
        if interface is None:
            return errors.Bug(f"operation {op.entry.id} has no interface")
        call = deps.compute.attach_interfaces if plugged else deps.compute.detach_interfaces
        [result] = results_of([op], call(host, (interface_order(deps, op, interface, plugged),)))
        return result if isinstance(result, errors.NovaError) else {**result, "host": host}


class PlugInterface(InterfaceStep):
    """Plug the interface into the guest. Undo: unplug it; the operation waits for a host that does not answer.

    The address must not go to another server while the guest may still use it.
    """

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
    """Unplug the interface from the guest: the point of no return. Undo: plug it in again.

    It returns by the host's next start of the guest at the latest, because the server's row still has it.
    """

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
                LOG.warning("detach failed and the interface may be missing until the guest's next start: %s",
                            result.message, extra={"server": op.uuid})


def interface_order(deps: Deps, op: Op, interface: Interface, plugged: bool) -> InterfaceOrder:
    """Return the order to the host; ``build`` describes the guest after it."""
    build = build_order(deps, op.server, op, fence(op))
    rest = tuple(one for one in build.interfaces if one.id != interface.id)
    whole = build.interfaces if plugged and len(rest) < len(build.interfaces) else rest
    if plugged and whole is rest:
        whole = (*rest, interface)
    return InterfaceOrder(server_uuid=op.uuid, instance_name=build.instance_name, fence=build.fence,
                          interface=interface, build=msgspec.structs.replace(build, interfaces=whole))


def _with(op: Op, interface: Interface) -> tuple[Interface, ...]:
    """Return the server's interfaces including this one, in its existing place or at the end.

    An interface that an earlier try took, in a transaction that was rolled back, is left out.
    """
    earlier, current = interface_of(op), tuple(op.server.interfaces or ())
    if earlier is not None and earlier.id != interface.id:
        current = tuple(one for one in current if one.id != earlier.id)
    op.note(interface=interface)
    if any(one.id == interface.id for one in current):
        return tuple(interface if one.id == interface.id else one for one in current)
    return (*current, interface)


def _drop(tx: Connection, deps: Deps, ops: Sequence[Op]) -> Mapping[str, object]:
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
    TakeInterface(),   # bind an address or a port on the server's host; undo: release it
    PlugInterface(),   # give it to the guest, now or at its next start; undo: unplug
    asks=AttachInterface,
)

DETACH_INTERFACE = Workflow(
    "detach_interface",
    UnplugInterface(),                                        # remove it from the guest; undo: plug it in again
    DropInterface(),                                          # delete it, or return the user's port
    asks=DetachInterface,
)
