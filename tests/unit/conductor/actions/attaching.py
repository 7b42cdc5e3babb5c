"""A back end whose servers' interfaces come and go, kept in memory: as rows of our own, or as ports next door."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from nova import errors
from nova.conductor.engine.operation import Op
from nova.conductor.nova_network.back_end import NovaNetwork
from nova.model.network.networks import FixedAddress, Interface, RequestedNetwork

NETWORK, FULL = "3cb9bc59-5699-4588-a4b1-b87f96708bc6", "11111111-5699-4588-a4b1-b87f96708bc6"
PORT = "ce531f90-199f-48c0-816c-13e38010b442"


class Attaching(NovaNetwork):
    """``next_door`` True: interfaces come from ``make_interface``. ``held``: interface id -> server; ``ports``: those
    of users', by id, with the server that has each."""

    def __init__(self, deps: Any, next_door: bool) -> None:
        super().__init__(deps)
        self.next_door = next_door
        self.held: dict[str, str] = {}
        self.ports: dict[str, str | None] = {PORT: None}
        self._by_operation: dict[int, Interface] = {}

    def check_interface(self, server: Any, requested: RequestedNetwork) -> RequestedNetwork:
        if requested.network_id == FULL:
            raise errors.Conflict("No address is left.")
        if requested.port_id is not None and self.ports.get(requested.port_id):
            raise errors.Conflict(f"Port {requested.port_id} is still in use.")
        return requested if requested.network_id or requested.port_id else RequestedNetwork(network_id=NETWORK,
                                                                                            tag=requested.tag)

    def take_interface(self, tx: Any, op: Op, requested: RequestedNetwork) -> Interface | None:
        return None if self.next_door else self._one(op, requested)

    def make_interface(self, op: Op, requested: RequestedNetwork) -> Interface:
        return self._one(op, requested)

    def drop_interface(self, tx: Any, op: Op, interface: Interface) -> None:
        if not self.next_door:
            self.held.pop(interface.id, None)

    def remove_interface(self, op: Op, interface: Interface) -> None:
        self.held.pop(interface.id, None)
        if interface.id in self.ports:
            self.ports[interface.id] = None

    def unbind(self, ops: Sequence[Op]) -> None:
        super().unbind(ops)
        gone = {op.uuid for op in ops}
        self.held = {key: server for key, server in self.held.items() if server not in gone}

    def _one(self, op: Op, requested: RequestedNetwork) -> Interface:
        number = len(self._by_operation) + 2
        made = self._by_operation.setdefault(op.entry.id, Interface(
            id=requested.port_id or f"{number:08x}-199f-48c0-816c-13e38010b442", mac=f"fa:16:3e:4c:2c:{number:02x}",
            network_id=requested.network_id or NETWORK, label="second", tag=requested.tag, bridge="br101",
            addresses=(FixedAddress(address=requested.fixed_ip or f"10.1.0.{number}"),),
                                                                    given=requested.port_id is not None))
        self.held[made.id] = op.uuid
        if made.given:
            self.ports[made.id] = op.uuid
        return made
