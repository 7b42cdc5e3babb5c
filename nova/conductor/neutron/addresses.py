"""Adding and removing single addresses of servers on Neutron (multinic), on ports that the server has."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence

from nova import errors
from nova.clients.neutron import Neutron
from nova.conductor.engine.deps import Deps
from nova.db.server import interface_cache
from nova.model.network.ports import Port

LOG = logging.getLogger(__name__)


class NeutronAddresses:
    """Calls that add and remove fixed addresses. ``refresh``: updates servers' rows immediately. ``client``:
    ``nova.clients.neutron.Neutron``."""

    def __init__(self, deps: Deps, client: Neutron, refresh: Callable[[Sequence[str]], object]) -> None:
        self.deps, self._client, self._refresh = deps, client, refresh

    def add_fixed_address(self, server_uuid: str, network_id: str) -> None:
        """Add an address from the first subnet of the network that has a free one, on the server's first port there."""
        ports = [port for port in self._ports(server_uuid) if port.network_id == network_id]
        found = self._client.subnets(filters={"network_id": network_id}) if ports else ()
        subnets = sorted(found, key=lambda subnet: (subnet.version, subnet.id))  # IPv4 first
        refused: errors.NovaError | None = None
        for port in ports:
            for subnet in subnets:
                try:
                    self._client.update_port(port.id, {"fixed_ips": [*_as_asked(port), {"subnet_id": subnet.id}]})
                except (errors.Conflict, errors.Invalid) as error:  # for example, the subnet is full
                    LOG.info("no address available from subnet %s: %s",
                             subnet.id, error.message, extra={"server": server_uuid})
                    refused = error
                else:
                    self._refresh([server_uuid])
                    return
        if refused is not None:
            raise errors.Invalid(refused.message)
        raise errors.network.NoPortThere(network=network_id, server=server_uuid)

    def remove_fixed_address(self, server_uuid: str, address: str) -> None:
        """Remove the address from the server's port that has it. Raises network.NotItsAddress; server.NotFound;
        Unavailable."""
        for port in self._ports(server_uuid):
            rest = [one for one in _as_asked(port) if one["ip_address"] != address]
            if len(rest) < len(port.addresses):
                self._client.update_port(port.id, {"fixed_ips": rest})
                self._refresh([server_uuid])
                return
        raise errors.network.NotItsAddress(server=server_uuid, address=address)

    def _ports(self, server_uuid: str) -> list[Port]:
        """Return the server's ports that its row has: any user can set this server as the device of their own port."""
        with self.deps.cell.reading() as tx:
            row = interface_cache.read(tx, [server_uuid]).get(server_uuid)
        if row is None:
            raise errors.NotFound(f"Instance {server_uuid} could not be found.")
        known = [one.id for one in row.interfaces or ()]
        found = {port.id: port for port in self._client.ports_of([server_uuid])}
        return [found[one] for one in known if one in found]


def _as_asked(port: Port) -> list[dict[str, str]]:
    return [{"subnet_id": one.subnet_id, "ip_address": one.address} for one in port.addresses]
