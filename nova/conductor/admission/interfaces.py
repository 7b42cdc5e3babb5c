"""Interfaces of servers that live: looked at, plugged in, taken out."""

from __future__ import annotations

from nova import errors
from nova.conductor.world import World
from nova.db import servers
from nova.model.networks import Interface, RequestedNetwork
from nova.model.servers import ServerQuery


class Interfaces:
    """The calls of InterfaceCalls."""

    def __init__(self, world: World) -> None:
        self.world = world

    def list_interfaces(self, query: ServerQuery) -> tuple[Interface, ...]:
        with self.world.cell.reading() as tx:
            row = servers.detail_row(tx, query.uuid, query.scope, query.with_deleted)
        return self.world.networking.interfaces_now(row)

    def attach_interface(self, server_uuid: str, wish: RequestedNetwork) -> Interface:
        raise errors.NotSupported("interfaces can not be attached yet")

    def detach_interface(self, server_uuid: str, interface_id: str) -> None:
        raise errors.NotSupported("interfaces can not be detached yet")

    def add_fixed_address(self, server_uuid: str, network_id: str) -> None:
        raise errors.NotSupported("addresses can not be added yet")

    def remove_fixed_address(self, server_uuid: str, address: str) -> None:
        raise errors.NotSupported("addresses can not be removed yet")
