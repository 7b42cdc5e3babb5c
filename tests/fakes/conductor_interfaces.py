"""The fake conductor's part for servers' interfaces: they come and go at once."""

from __future__ import annotations

from typing import Any

import msgspec

from nova import errors
from nova.model.networks import FixedAddress, Interface, RequestedNetwork
from nova.model.servers import ServerQuery

replace = msgspec.structs.replace

PORT = Interface(
    id="ce531f90-199f-48c0-816c-13e38010b442", mac="fa:16:3e:4c:2c:30", label="private",
    network_id="3cb9bc59-5699-4588-a4b1-b87f96708bc6", status="ACTIVE", tag="public",
    addresses=(FixedAddress(address="192.168.1.3", subnet_id="f8a6e8f8-c2ec-497c-9f23-da9616de54ef"),))


class ServerInterfaces:
    """Beside Servers, whose ``servers`` it changes. ``wishes`` and ``fixed`` keep what the API asked for;
    ``refuses``: why the next attach fails."""

    servers: dict[str, Any]
    _find: Any

    def __init__(self) -> None:
        super().__init__()
        self.wishes: list[RequestedNetwork] = []
        self.fixed: list[tuple[str, str, str]] = []
        self.refuses: errors.NovaError | None = None

    def list_interfaces(self, query: ServerQuery) -> tuple[Interface, ...]:
        return tuple(self._find(query.uuid, query.scope).interfaces)

    def attach_interface(self, server_uuid: str, wish: RequestedNetwork) -> Interface:
        server = self._find(server_uuid)
        self.wishes.append(wish)
        if self.refuses is not None:
            raise self.refuses
        if any(one.id == wish.port_id for one in server.interfaces):
            raise errors.Conflict(f"Port {wish.port_id} is still in use.")
        made = replace(PORT, id=wish.port_id or PORT.id, network_id=wish.network_id or PORT.network_id, tag=wish.tag)
        self.servers[server_uuid] = replace(server, interfaces=(*server.interfaces, made))
        return made

    def detach_interface(self, server_uuid: str, interface_id: str) -> None:
        server = self._find(server_uuid)
        rest = tuple(one for one in server.interfaces if one.id != interface_id)
        if len(rest) == len(server.interfaces):
            raise errors.NotFound(f"Instance {server_uuid} has no interface {interface_id}.")
        self.servers[server_uuid] = replace(server, interfaces=rest)

    def add_fixed_address(self, server_uuid: str, network_id: str) -> None:
        self._find(server_uuid)
        self.fixed.append(("add", server_uuid, network_id))

    def remove_fixed_address(self, server_uuid: str, address: str) -> None:
        self._find(server_uuid)
        self.fixed.append(("remove", server_uuid, address))
