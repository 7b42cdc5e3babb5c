"""Interfaces and addresses: taken, given back and bound again by whoever keeps the networks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from nova import errors
from nova.conductor.networking import access_addresses
from nova.conductor.workflow import Op, Result, Step
from nova.conductor.world import World
from nova.db.engine import Connection
from nova.db.states import PerServer


class BindNetworks(Step):
    """Give each server its interfaces and addresses; undo: take them back."""

    def within(self, tx: Connection, world: World, ops: Sequence[Op]) -> Mapping[str, Any]:
        bound = world.networking.take(tx, ops)
        zone = ops[0].data.get("zone") or world.settings.default_availability_zone  # one host, so one zone
        for op in ops:
            taken = {"interfaces": bound[op.uuid]} if op.uuid in bound else {}
            op.see(**taken, host=op.data["host"], node=op.data["node"], availability_zone=zone)
        return {**({"interfaces": PerServer(bound)} if bound else {}),
                "host": ops[0].data["host"], "availability_zone": zone,
                "node": PerServer({op.uuid: op.data["node"] for op in ops})}  # one host, which may have several

    def do(self, world: World, ops: Sequence[Op]) -> Sequence[Result]:
        found: Sequence[Result] = world.networking.bind(ops)
        access_addresses.write([op for op, result in zip(ops, found, strict=True)
                                if not isinstance(result, errors.NovaError)],
                               world.settings.networking.default_access_ip_network_name)
        return found

    def undo_within(self, tx: Connection, world: World, ops: Sequence[Op]) -> Mapping[str, Any]:
        world.networking.give_back(tx, ops)
        gone: dict[str, Any] = {"interfaces": (), "host": None, "node": None, "availability_zone": None}
        for op in ops:
            op.see(**gone)
        return gone

    def undo(self, world: World, ops: Sequence[Op]) -> None:
        world.networking.unbind(ops)


class UnbindNetworks(Step):
    """Give the addresses back."""

    def within(self, tx: Connection, world: World, ops: Sequence[Op]) -> Mapping[str, Any]:
        world.networking.give_back(tx, ops)
        return {}

    def do(self, world: World, ops: Sequence[Op]) -> Sequence[Result]:
        world.networking.unbind(ops)
        return [{} for _ in ops]
