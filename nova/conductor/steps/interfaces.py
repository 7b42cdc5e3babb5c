"""One interface more of a server that lives, or one less: its address or port, and the guest on its host.

The interface that an operation is about is kept in the journal's data, whole: what has to be undone is known to
whoever takes over, when the server's row has lost it already.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from nova import errors
from nova.conductor.engine.deps import World
from nova.conductor.engine.orders import build_order
from nova.conductor.engine.workflow import NotYet, Op, Result, Step
from nova.conductor.steps.guests import NoHost, fence, results_of
from nova.db.engine import Connection
from nova.db.states import PerServer
from nova.model.networks import Interface, RequestedNetwork
from nova.model.orders import InterfaceOrder

LOG = logging.getLogger(__name__)

INTERFACE, WISH = "interface", "wish"  # in the journal: what it is about, and (an argument) what was asked for


def interface_of(op: Op) -> Interface | None:
    """What the operation is about; None before it is known."""
    known = op.data.get(INTERFACE) or op.entry.arguments.get(INTERFACE)
    return msgspec.convert(known, Interface) if known else None


def wish_of(op: Op) -> RequestedNetwork:
    return msgspec.convert(op.entry.arguments[WISH], RequestedNetwork)


class TakeInterface(Step):
    """The server has one more interface, the last in the guest's order; undo: it goes back to where it came from."""

    def within(self, tx: Connection, world: World, ops: Sequence[Op]) -> Mapping[str, Any]:
        added = {}
        for op in ops:
            taken = world.networking.take_interface(tx, op, wish_of(op))
            if taken is not None:
                added[op.uuid] = _with(op, taken)
                op.see(interfaces=added[op.uuid])
        return {"interfaces": PerServer(added)} if added else {}

    def do(self, world: World, ops: Sequence[Op]) -> Sequence[Result]:
        return [self._make(world, op) for op in ops]

    @staticmethod
    def _make(world: World, op: Op) -> Result:
        try:
            made = world.networking.make_interface(op, wish_of(op))
        except NotYet:
            raise  # it may be there, and nobody can say: whoever goes on finds out
        except errors.NovaError as error:
            return error
        before, after = op.server.interfaces or (), _with(op, made)
        if after != before:
            op.write(interfaces=after)
        return {}

    def undo_within(self, tx: Connection, world: World, ops: Sequence[Op]) -> Mapping[str, Any]:
        return _drop(tx, world, ops)

    def undo(self, world: World, ops: Sequence[Op]) -> None:
        _remove(world, ops)


class DropInterface(Step):
    """The server's row has it no more, and its address or port is nobody's (or, a port that was given, free). The
    guest has lost it before: there is no way back."""

    def within(self, tx: Connection, world: World, ops: Sequence[Op]) -> Mapping[str, Any]:
        return _drop(tx, world, ops)

    def do(self, world: World, ops: Sequence[Op]) -> Sequence[Result]:
        _remove(world, ops)
        return [{} for _ in ops]


class InterfaceStep(Step):
    """An order to the guest's host about the operation's interface."""

    def send(self, world: World, op: Op, plugged: bool) -> Result:
        """The guest shall have it, or not: with all else that it has."""
        host, interface = op.server.host, interface_of(op)
        if not host:
            return NoHost(server=op.uuid)
        if interface is None:
            return errors.Bug(f"operation {op.entry.id} does not know its interface")
        call = world.compute.attach_interfaces if plugged else world.compute.detach_interfaces
        [result] = results_of([op], call(host, (interface_order(world, op, interface, plugged),)))
        return result if isinstance(result, errors.NovaError) else {**result, "host": host}


class PlugInterface(InterfaceStep):
    """The guest has it. Undo: it has not; a host that can't be told keeps the operation waiting, for the address must
    not be another's while the guest may use it."""

    event = "compute_attach_interface"

    def do(self, world: World, ops: Sequence[Op]) -> Sequence[Result]:
        return [self.send(world, op, plugged=True) for op in ops]

    def undo(self, world: World, ops: Sequence[Op]) -> None:
        for op in ops:
            if interface_of(op) is None or not op.server.host:
                continue
            result = self.send(world, op, plugged=False)
            if isinstance(result, errors.NovaError) and not isinstance(result, errors.NotFound | errors.NotSupported):
                raise result


class UnplugInterface(InterfaceStep):
    """The guest has given it up; from here on there is no way back. Undo: it has it again, by its host's next start at
    the latest, for the server's row never lost it."""

    event = "compute_detach_interface"

    def do(self, world: World, ops: Sequence[Op]) -> Sequence[Result]:
        return [self._unplug(world, op) for op in ops]

    def _unplug(self, world: World, op: Op) -> Result:
        result = self.send(world, op, plugged=False)
        return result if isinstance(result, errors.NovaError) else {**result, "committed": True}

    def undo(self, world: World, ops: Sequence[Op]) -> None:
        for op in ops:
            if not op.server.host:
                continue
            try:
                result = self.send(world, op, plugged=True)
            except errors.Unavailable as error:
                result = error
            if isinstance(result, errors.Overtaken):
                raise result
            if isinstance(result, errors.NovaError):
                LOG.warning("an interface that could not be detached may be missing until the guest's next start: %s",
                            result.message, extra={"server": op.uuid})


def interface_order(world: World, op: Op, interface: Interface, plugged: bool) -> InterfaceOrder:
    """``build``: the guest as it is after it."""
    build = build_order(world, op.server, op, fence(op))
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
    op.change(data={**op.data, INTERFACE: msgspec.to_builtins(interface)})
    if any(one.id == interface.id for one in current):
        return tuple(interface if one.id == interface.id else one for one in current)
    return (*current, interface)


def _drop(tx: Connection, world: World, ops: Sequence[Op]) -> Mapping[str, Any]:
    left = {}
    for op in ops:
        interface = interface_of(op)
        if interface is not None:
            world.networking.drop_interface(tx, op, interface)
            left[op.uuid] = tuple(one for one in op.server.interfaces or () if one.id != interface.id)
            op.see(interfaces=left[op.uuid])
    return {"interfaces": PerServer(left)} if left else {}


def _remove(world: World, ops: Sequence[Op]) -> None:
    for op in ops:
        interface = interface_of(op)
        if interface is not None:
            world.networking.remove_interface(op, interface)


__all__ = ["DropInterface", "PlugInterface", "TakeInterface", "UnplugInterface", "interface_of", "interface_order"]
