"""Addresses: taken and given back in the transaction that journals it, then told to the network's host."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Any

from nova import errors
from nova.conductor.workflow import Op, Result, Step
from nova.conductor.world import World
from nova.db import networks
from nova.db.engine import Connection
from nova.db.states import PerServer

LOG = logging.getLogger(__name__)


class BindNetworks(Step):
    """Give each server its interfaces and addresses; undo: take them back."""

    def within(self, tx: Connection, world: World, ops: Sequence[Op]) -> Mapping[str, Any]:
        bound = networks.bind(tx, [networks.Wish(op.uuid, op.server.hostname or "",
                                                 op.server.requested_networks or ()) for op in ops])
        zone = ops[0].data.get("zone") or world.settings.default_availability_zone  # one host, so one zone
        for op in ops:
            op.change(data={**op.data, "networks": sorted({one.network_id for one in bound[op.uuid]})})
            op.see(interfaces=bound[op.uuid], host=op.data["host"], node=op.data["node"], availability_zone=zone)
        return {"interfaces": PerServer(bound), "host": ops[0].data["host"], "availability_zone": zone,
                "node": PerServer({op.uuid: op.data["node"] for op in ops})}  # one host, which may have several

    def do(self, world: World, ops: Sequence[Op]) -> Sequence[Result]:
        world.teller.tell([uuid for op in ops for uuid in op.data.get("networks", ())])
        return [{} for _ in ops]

    def undo_within(self, tx: Connection, world: World, ops: Sequence[Op]) -> Mapping[str, Any]:
        networks.unbind(tx, [op.uuid for op in ops])
        gone: dict[str, Any] = {"interfaces": (), "host": None, "node": None, "availability_zone": None}
        for op in ops:
            op.see(**gone)
        return gone

    def undo(self, world: World, ops: Sequence[Op]) -> None:
        forget(world, ops)


class UnbindNetworks(Step):
    """Give the addresses back."""

    def within(self, tx: Connection, world: World, ops: Sequence[Op]) -> Mapping[str, Any]:
        for op in ops:
            used = {one.network_id for one in op.server.interfaces or ()} | set(op.data.get("networks", ()))
            op.change(data={**op.data, "networks": sorted(used)})
        networks.unbind(tx, [op.uuid for op in ops])
        return {}

    def do(self, world: World, ops: Sequence[Op]) -> Sequence[Result]:
        forget(world, ops)
        return [{} for _ in ops]


def forget(world: World, ops: Sequence[Op]) -> None:
    """Tell the network hosts; one that is away reads the state whole when it is back, so nothing is owed."""
    try:
        world.teller.tell([uuid for op in ops for uuid in op.data.get("networks", ())])
    except errors.NovaError as error:
        LOG.warning("a network host was not told of addresses given back: %s", error.message)
