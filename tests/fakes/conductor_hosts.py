"""The fake conductor's part for hosts: services, zones, hypervisors."""

from __future__ import annotations

import datetime
import uuid
from typing import Any

import msgspec

from nova import errors
from nova.model.services import (
    Amounts,
    HostPowerChange,
    HostUsage,
    Hypervisor,
    HypervisorQuery,
    HypervisorStatistics,
    ServerName,
    Service,
    ServiceQuery,
    ServiceUpdate,
    Zone,
)

replace = msgspec.structs.replace
SEEN = datetime.datetime(2026, 1, 2, 3, 4, 5, 678901)


def numbered(kind: int, number: int) -> str:
    return str(uuid.UUID(int=(kind << 64) + number))


class Hosts:
    """``uptime`` is every hypervisor's; ``hypervisor_queries`` keeps what was asked."""

    def __init__(self) -> None:
        super().__init__()
        self.services: list[Service] = []
        self.hypervisors: list[Hypervisor] = []
        self.hypervisor_queries: list[HypervisorQuery] = []
        self.busy_hosts: set[str] = set()
        self.power_changes: list[HostPowerChange] = []
        self.power_error: errors.NovaError | None = None
        self.silent_cell = False
        self.uptime: str | None = " 08:32:11 up 93 days"

    def add_service(self, host: str, binary: str = "nova-compute", **fields: Any) -> Service:
        number = len(self.services) + 1
        values = {"zone": "nova" if binary == "nova-compute" else "internal", "up": True, "last_seen_at": SEEN,
                  **fields}
        self.services.append(Service(id=number, uuid=numbered(1, number), host=host, binary=binary, **values))
        return self.services[-1]

    def add_hypervisor(self, hostname: str, **fields: Any) -> Hypervisor:
        """A node with a host and service of its own, of the same name."""
        number = len(self.hypervisors) + 1
        values: dict[str, Any] = {"host": hostname, "type": "QEMU", "version": 7002000, "host_ip": "192.0.2.1",
                                  "vcpus": 4, "memory_mb": 8192, "memory_mb_used": 512, "local_gb": 100,
                                  "cpu_info": '{"arch": "x86_64"}', **fields}
        values["service"] = fields.get("service") or self.add_service(values["host"])
        self.hypervisors.append(Hypervisor(id=number, uuid=numbered(2, number), hostname=hostname, **values))
        return self.hypervisors[-1]

    # services

    def list_services(self, query: ServiceQuery) -> tuple[Service, ...]:
        asked = {name: getattr(query, name) for name in ("host", "binary", "id", "uuid")}
        if self.silent_cell and query.with_unknown:
            return tuple(Service(id=0, uuid="", host=one.host, binary=one.binary, unknown=True)
                         for one in self.services if one.binary == "nova-compute")
        return tuple(service for service in self.services
                     if all(value in (None, getattr(service, name)) for name, value in asked.items()))

    def update_service(self, update: ServiceUpdate) -> Service:
        found = self.list_services(ServiceQuery(uuid=update.uuid, host=update.host, binary=update.binary))
        if not found:
            raise errors.NotFound(f"Service {update.uuid or update.binary} could not be found.")
        changed = found[0]
        if update.disabled is not None:
            changed = replace(changed, disabled=update.disabled, disabled_reason=update.disabled_reason)
        if update.forced_down is not None:
            changed = replace(changed, forced_down=update.forced_down)
        self.services[self.services.index(found[0])] = changed
        return changed

    def delete_service(self, query: ServiceQuery) -> None:
        found = self.list_services(query)
        if not found:
            raise errors.NotFound(f"Service {query.uuid or query.id} could not be found.")
        if found[0].host in self.busy_hosts:
            raise errors.Conflict("Unable to delete compute service that is hosting instances.")
        self.services.remove(found[0])

    def get_host_usage(self, host: str) -> HostUsage:
        if not any(one.host == host for one in self.hypervisors):
            raise errors.NotFound(f"Compute host {host} could not be found.")
        return HostUsage(host=host, total=Amounts(vcpus=4, memory_mb=8192, disk_gb=100),
                         used=Amounts(memory_mb=512), promised=Amounts(vcpus=1, memory_mb=512, disk_gb=1),
                         projects={"demo": Amounts(vcpus=1, memory_mb=512, disk_gb=1)})

    def change_host_power(self, change: HostPowerChange) -> str:
        self.power_changes.append(change)
        if self.power_error is not None:
            raise self.power_error
        words = {"maintenance_on": "on_maintenance", "maintenance_off": "off_maintenance"}
        return words.get(change.action, change.action)

    def list_zones(self, with_services: bool) -> tuple[Zone, ...]:
        names = sorted({service.zone for service in self.services})
        members = {name: tuple(service for service in self.services if service.zone == name) for name in names}
        return tuple(Zone(name=name, internal=name == "internal",
                          available=any(not service.disabled for service in members[name]),
                          services=members[name] if with_services else ()) for name in names)

    # hypervisors

    def list_hypervisors(self, query: HypervisorQuery) -> tuple[Hypervisor, ...]:
        self.hypervisor_queries.append(query)
        held = [one for one in self.hypervisors
                if query.id in (None, one.id) and query.uuid in (None, one.uuid)
                and (query.hostname_pattern or "") in one.hostname]
        if query.marker is not None:
            places = [index for index, one in enumerate(held) if query.marker in (one.uuid, str(one.id))]
            if not places:
                raise errors.Invalid(f"marker [{query.marker}] not found")
            held = held[places[0] + 1:]
        if not held and (query.id is not None or query.uuid is not None):
            raise errors.NotFound("Compute host could not be found.")
        return tuple(replace(one, uptime=self.uptime if query.with_uptime else None,
                             servers=self._servers_of(one) if query.with_servers else None)
                     for one in held[:query.limit])

    def _servers_of(self, hypervisor: Hypervisor) -> tuple[ServerName, ...]:
        servers = getattr(self, "servers", {}).values()
        return tuple(ServerName(uuid=server.uuid, name=server.name) for server in servers
                     if server.node == hypervisor.hostname)

    def get_hypervisor_statistics(self) -> HypervisorStatistics:
        def total(name: str) -> int:
            return sum(getattr(one, name) for one in self.hypervisors)
        return HypervisorStatistics(
            count=len(self.hypervisors), vcpus=total("vcpus"), memory_mb=total("memory_mb"),
            memory_mb_used=total("memory_mb_used"), local_gb=total("local_gb"), local_gb_used=total("local_gb_used"),
            free_ram_mb=total("memory_mb") - total("memory_mb_used"),
            free_disk_gb=total("local_gb") - total("local_gb_used"))
