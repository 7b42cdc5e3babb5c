"""Which server a load balancer's request for metadata is from: it signs its own id, and says the guest's address."""

from __future__ import annotations

from nova import errors
from nova.db.types import AnyColumn
from nova.model.ports import OWNER


def guest_at(client: AnyColumn, provider_id: str, address: str) -> tuple[str, str]:
    """(the server's uuid, the project of the port that says so). ``client``: nova.clients.neutron.Neutron.
    metadata.NotOnePort; Unavailable."""
    subnets = client.subnets(filters={"advanced_service_providers": provider_id})
    networks = sorted({subnet.network_id for subnet in subnets})
    ports = client.ports({"fixed_ips": f"ip_address={address}", "network_id": networks}) if networks else ()
    servers = [port for port in ports if port.device_id and port.device_owner.startswith(OWNER)]
    if len(servers) != 1:
        raise errors.metadata.NotOnePort(address=address, provider=provider_id, count=len(servers))
    return servers[0].device_id, servers[0].project_id
