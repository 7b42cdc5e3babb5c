"""The fake conductor's part for nova-network's pools: networks are made and change hands, addresses are set aside."""

from __future__ import annotations

from typing import Any

import msgspec

from nova import errors
from nova.model.base import Scope
from nova.model.networks import FixedAddressRow, Network, NetworkChange, NewNetwork

replace = msgspec.structs.replace


class NetworkPools:
    """Beside Networks, whose ``networks`` it changes. ``wanted`` and ``changes`` keep what was asked for; ``refuses``
    is raised by the next call that writes."""

    networks: dict[str, Network]
    add_network: Any
    list_networks: Any

    def __init__(self) -> None:
        super().__init__()
        self.wanted: list[NewNetwork] = []
        self.changes: list[NetworkChange] = []
        self.fixed_rows: dict[str, FixedAddressRow] = {}
        self.refuses_networks: errors.NovaError | None = None

    def _allow(self) -> None:
        if self.refuses_networks is not None:
            raise self.refuses_networks

    def _one(self, uuid: str, scope: Scope | None = None) -> Network:
        for network in self.list_networks(scope or Scope()):
            if network.uuid == uuid:
                return network
        raise errors.NotFound(f"Network {uuid} could not be found.")

    def create_network(self, network: NewNetwork) -> tuple[Network, ...]:
        self._allow()
        self.wanted.append(network)
        fields = {name: getattr(network, name) for name in ("label", "cidr", "cidr_v6", "bridge", "project_id", "mtu")}
        return tuple(self.add_network(**fields) for _ in range(network.num_networks))

    def delete_network(self, uuid: str) -> None:
        self._allow()
        del self.networks[self._one(uuid).uuid]

    def delete_own_network(self, uuid: str, project_id: str) -> None:
        self._allow()
        del self.networks[self._one(uuid, Scope(project_id=project_id)).uuid]

    def change_network(self, change: NetworkChange) -> Network:
        self._allow()
        found = self._one(change.uuid)
        self.changes.append(change)
        self.networks[found.uuid] = replace(found, **{name: getattr(change, name) for name in change.fields})
        return self.networks[found.uuid]

    def add_network_to_project(self, uuid: str | None, project_id: str) -> Network:
        self._allow()
        free = [one for one in self.networks.values() if one.project_id is None and uuid in (None, one.uuid)]
        if not free:
            raise errors.NotFound(f"Network {uuid} could not be found.")
        self.networks[free[0].uuid] = replace(free[0], project_id=project_id)
        return self.networks[free[0].uuid]

    def list_fixed_addresses(self, host: str | None) -> tuple[FixedAddressRow, ...]:
        return tuple(row for row in self.fixed_rows.values() if host in (None, row.host))

    def get_fixed_address(self, address: str) -> FixedAddressRow:
        if address not in self.fixed_rows:
            raise errors.NotFound(f"Fixed IP not found for address {address}.")
        return self.fixed_rows[address]

    def reserve_fixed_address(self, address: str, reserved: bool) -> None:
        self.fixed_rows[address] = replace(self.get_fixed_address(address), reserved=reserved)
