"""Single fixed addresses of nova-network: reading, reserving, and adding them to existing servers."""

from __future__ import annotations

import uuid as uuids

import msgspec

from nova import errors
from nova.conductor.engine.deps import Deps
from nova.conductor.nova_network.addresses import Addresses
from nova.db.network import addresses as rows
from nova.db.network import floating, network_pools
from nova.db.network.addresses import AddressRequest
from nova.db.server import servers
from nova.db.server.server_row import ServerRow
from nova.db.sql.engine import Connection
from nova.model.network.networks import FixedAddress, FixedAddressRow, Interface, RequestedNetwork
from nova.model.server.states import TaskState


class FixedAddresses:
    """The calls about fixed addresses. A change of a server's addresses writes its row's interfaces in the same
    transaction."""

    def __init__(self, deps: Deps, addresses: Addresses) -> None:
        self.deps, self.addresses = deps, addresses

    def list_fixed_addresses(self, host: str | None) -> tuple[FixedAddressRow, ...]:
        """Return the fixed addresses of a host, or of all networks (``host`` None)."""
        with self.deps.cell.reading() as tx:
            return network_pools.fixed_rows(tx, host)

    def get_fixed_address(self, address: str) -> FixedAddressRow:
        """Return one fixed address. Raises network.NoSuchAddress, network.BadAddress."""
        with self.deps.cell.reading() as tx:
            return network_pools.fixed_row(tx, address)

    def reserve_fixed_address(self, address: str, reserved: bool) -> None:
        """Reserve or unreserve an address; a server that has it keeps it. Raises network.NoSuchAddress,
        network.BadAddress."""
        self.deps.cell.transact(lambda tx: network_pools.reserve(tx, address, reserved))

    # -- addresses of servers

    def add_fixed_address(self, server_uuid: str, network_id: str) -> None:
        """Add an address to the server's first interface in the network. Without one, a new interface is allocated,
        which the guest gets at its next start."""
        key = str(uuids.uuid4())

        def add(tx: Connection) -> ServerRow:
            row = _locked(tx, server_uuid)
            if row.task_state == TaskState.DELETING:  # its delete may have released all addresses already
                raise errors.server.Going(server=server_uuid)
            if network_id not in self.addresses.known(tx, row.project_id):
                raise errors.server.BadNetwork(network_id=network_id)
            requested = RequestedNetwork(network_id=network_id)
            request = AddressRequest(row.uuid, row.hostname or "", (requested,), row.project_id, row.host)
            terms = self.addresses.terms([row.project_id])
            added = rows.add_address(tx, request, terms)
            if added is None:
                after = (*(row.interfaces or ()), rows.take_interface(tx, request, key, terms))
            else:
                after = tuple(_with(one, added[1]) if one.id == added[0] else one for one in row.interfaces or ())
            servers.update(tx, row.uuid, {"interfaces": after})
            return row
        self._update_hosts(self.deps.cell.transact(add), {network_id})

    def remove_fixed_address(self, server_uuid: str, address: str) -> None:
        """Remove an address together with its floating address. Raises server.NotFound, network.NotItsAddress."""
        def remove(tx: Connection) -> tuple[ServerRow, set[str]]:
            row = _locked(tx, server_uuid)
            changed = {one.network_id for one in row.interfaces or () if address in _own(one)}
            if not changed:
                raise errors.network.NotItsAddress(server=server_uuid, address=address)
            floating.leave(tx, [row.uuid], [address])
            rows.drop_address(tx, row.uuid, address, self.addresses.options.keeps_leased)
            held = floating.of_servers(tx, [row.uuid]).get(row.uuid, {})  # the current ones
            after = floating.with_floating([_without(one, address) for one in row.interfaces or ()], held)
            servers.update(tx, row.uuid, {"interfaces": after})
            return row, changed
        self._update_hosts(*self.deps.cell.transact(remove))

    def _update_hosts(self, row: ServerRow, networks_: set[str]) -> None:
        self.addresses.update_hosts(networks_, {row.host} if row.host else set(), row.uuid)
        self.deps.networking.groups.addresses_changed([row.uuid])


def _locked(tx: Connection, uuid: str) -> ServerRow:
    servers.lock_row(tx, uuid)
    return servers.rows_of(tx, [uuid])[uuid]


def _own(one: Interface) -> set[str]:
    """Return the allocated addresses; IPv6 addresses are derived from the MAC."""
    return {address.address for address in one.addresses if address.version == 4}


def _with(one: Interface, address: str) -> Interface:
    fourth = tuple(found for found in one.addresses if found.version == 4)
    others = tuple(found for found in one.addresses if found.version != 4)
    return msgspec.structs.replace(one, addresses=(*fourth, FixedAddress(address=address), *others))


def _without(one: Interface, address: str) -> Interface:
    return msgspec.structs.replace(one, addresses=tuple(found for found in one.addresses if found.address != address))


__all__ = ["FixedAddresses"]
