"""What a server's claim on a host got for its ports: read once for all of them, and only where one asks for something.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence

from nova.conductor.networking.neutron_demands import allocation_of
from nova.conductor.workflow import Op
from nova.conductor.world import World
from nova.db import claims, port_claims
from nova.model.networks import PortDemand
from nova.model.port_demands import met_by
from nova.model.topology import PackedDevice


class ClaimedPorts:
    """``host``: the end that is meant, where a move holds something on two."""

    def __init__(self, world: World, op: Op, host: str | None) -> None:
        self._world, self._op, self._host = world, op, host or ""
        self.demands: Sequence[PortDemand] = op.server.port_demands or ()

    def allocation(self, port_id: str) -> str | dict[str, str] | None:
        return allocation_of(port_id, self.demands, self._providers) if self.demands else None

    def device(self, port_id: str) -> PackedDevice | None:
        return self._devices.get(port_id) if self.demands else None

    @property
    def _leaving(self) -> bool:
        """Whether it is the end that the move leaves."""
        source = self._op.entry.arguments.get("source")
        return bool(source) and source == self._host and self._op.data.get("host") != source

    @functools.cached_property
    def _providers(self) -> Mapping[tuple[str, str], str]:
        with self._world.api.reading() as tx:
            held = port_claims.held(tx, self._op.uuid, self._host, self._leaving)
        return met_by(self.demands, held)

    @functools.cached_property
    def _devices(self) -> Mapping[str, PackedDevice]:
        with self._world.api.reading() as tx:
            packing = claims.packing_at(tx, self._op.uuid, self._host, self._leaving)
        return {one.id: one for one in packing.devices if one.id} if packing is not None else {}


__all__ = ["ClaimedPorts"]
