"""``default_access_ip_network_name``: a new server's addresses on that network become those that it is shown with."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from nova import errors
from nova.conductor.engine.deps import Deps
from nova.conductor.engine.workflow import Op, Result, Step
from nova.db.engine import Connection
from nova.db.states import PerServer
from nova.db.types import AnyColumn
from nova.model.networks import Interface


def write(ops: Iterable[Op], label: str | None) -> None:
    """Of each server that has interfaces on the network of that label; what the user chose stands."""
    for op in ops if label else ():
        found = first_of(op.server.interfaces or (), str(label))
        fresh = {name: address for name, address in found.items() if not getattr(op.server, name)}
        if fresh and op.entry.action == "create":
            op.write(**fresh)


def first_of(interfaces: Iterable[Interface], label: str) -> dict[str, str]:
    """By the column's name, the first address of each family there."""
    found: dict[str, str] = {}
    for one in interfaces:
        for address in one.addresses if one.label == label else ():
            found.setdefault(f"access_ip_v{address.version}", address.address)
    return found


class BindNetworks(Step):
    """Give each server its interfaces and addresses; undo: take them back."""

    uses = ("networking", "settings")

    def within(self, tx: Connection, deps: Deps, ops: Sequence[Op]) -> Mapping[str, AnyColumn]:
        bound = deps.networking.take(tx, ops)
        zone = ops[0].progress.zone or deps.settings.default_availability_zone  # one host, so one zone
        for op in ops:
            taken = {"interfaces": bound[op.uuid]} if op.uuid in bound else {}
            op.see(**taken, host=op.progress.host, node=op.progress.node, availability_zone=zone)
        return {**({"interfaces": PerServer(bound)} if bound else {}),
                "host": ops[0].progress.host, "availability_zone": zone,
                "node": PerServer({op.uuid: op.progress.node for op in ops})}  # one host, which may have several

    def do(self, deps: Deps, ops: Sequence[Op]) -> Sequence[Result]:
        found: Sequence[Result] = deps.networking.bind(ops)
        write([op for op, result in zip(ops, found, strict=True)
                                if not isinstance(result, errors.NovaError)],
                               deps.settings.networking.default_access_ip_network_name)
        return found

    def undo_within(self, tx: Connection, deps: Deps, ops: Sequence[Op]) -> Mapping[str, object]:
        deps.networking.give_back(tx, ops)
        gone: dict[str, Any] = {"interfaces": (), "host": None, "node": None, "availability_zone": None}
        for op in ops:
            op.see(**gone)
        return gone

    def undo(self, deps: Deps, ops: Sequence[Op]) -> None:
        deps.networking.unbind(ops)


class UnbindNetworks(Step):
    """Give the addresses back."""

    uses = ("networking",)

    def within(self, tx: Connection, deps: Deps, ops: Sequence[Op]) -> Mapping[str, AnyColumn]:
        deps.networking.give_back(tx, ops)
        return {}

    def do(self, deps: Deps, ops: Sequence[Op]) -> Sequence[Result]:
        deps.networking.unbind(ops)
        return [{} for _ in ops]
