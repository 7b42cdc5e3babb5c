"""Parts of the fake conductor: services, hypervisors, aggregates, usage and pending cleanups."""

from __future__ import annotations

import datetime
from typing import Any

from nova import errors
from nova.model.host.aggregates import ZONE
from nova.model.host.services import Amounts, HostUsage, HypervisorStatistics, ServerName, Service, ServiceQuery, Zone
from nova.model.quota.usage import ProjectUsage, UsagePage
from tests.fakes.shelves import after, first, held, replace

CHANGED = datetime.datetime(2026, 1, 3, 3, 4, 5)
POWERS = {"maintenance_on": "on_maintenance", "maintenance_off": "off_maintenance"}


class Hosts:
    def list_services(self: Any, query: Any) -> Any:
        if self.silent_cell and query.with_unknown:
            return tuple(Service(id=0, uuid="", host=one.host, binary=one.binary, unknown=True)
                         for one in self.services if one.binary == "nova-compute")
        asked = {name: getattr(query, name) for name in ("host", "binary", "id", "uuid")}
        return tuple(service for service in self.services
                     if all(value in (None, getattr(service, name)) for name, value in asked.items()))

    def _service(self: Any, **asked: Any) -> Any:
        return first(Hosts.list_services(self, ServiceQuery(**asked)), f"Service {asked}")

    def update_service(self: Any, update: Any) -> Any:
        found = self._service(uuid=update.uuid, host=update.host, binary=update.binary)
        changes = {name: getattr(update, name) for name in ("disabled", "forced_down")
                   if getattr(update, name) is not None}
        if "disabled" in changes:
            changes["disabled_reason"] = update.disabled_reason
        place = self.services.index(found)
        self.services[place] = replace(found, **changes)
        return self.services[place]

    def delete_service(self: Any, query: Any) -> None:
        self.services.remove(first(Hosts.list_services(self, query), f"Service {query.uuid or query.id}"))

    def get_host_usage(self: Any, host: Any) -> Any:
        first((one for one in self.hypervisors if one.host == host), f"Compute host {host}")
        return HostUsage(host=host, total=Amounts(vcpus=4, memory_mb=8192, disk_gb=100), used=Amounts(memory_mb=512),
                         promised=Amounts(vcpus=1, memory_mb=512, disk_gb=1),
                         projects={"demo": Amounts(vcpus=1, memory_mb=512, disk_gb=1)})

    def change_host_power(self: Any, change: Any) -> Any:
        return POWERS.get(change.action, change.action)

    def list_zones(self: Any, with_services: Any) -> Any:
        members: dict[str, list[Any]] = {}
        for service in self.services:
            members.setdefault(service.zone, []).append(service)
        return tuple(Zone(name=name, internal=name == "internal",
                          available=any(not service.disabled for service in members[name]),
                          services=tuple(members[name]) if with_services else ()) for name in sorted(members))

    def list_hypervisors(self: Any, query: Any) -> Any:
        found = after(query.marker, (
            one for one in self.hypervisors if query.id in (None, one.id) and query.uuid in (None, one.uuid)
            and (query.hostname_pattern or "") in one.hostname), "uuid", "id")
        if query.id is not None or query.uuid is not None:
            first(found, "Hypervisor")
        return tuple(replace(one, uptime=self.uptime if query.with_uptime else None,
                             servers=self._servers_on(one) if query.with_servers else None)
                     for one in found[:query.limit])

    def _servers_on(self: Any, hypervisor: Any) -> Any:
        return tuple(ServerName(uuid=server.uuid, name=server.name) for server in self.servers.values()
                     if server.node == hypervisor.hostname)

    def get_hypervisor_statistics(self: Any) -> Any:
        total = {name: sum(getattr(one, name) for one in self.hypervisors)
                 for name in ("vcpus", "memory_mb", "memory_mb_used", "local_gb", "local_gb_used")}
        return HypervisorStatistics(
            count=len(self.hypervisors), **total, free_ram_mb=total["memory_mb"] - total["memory_mb_used"],
            free_disk_gb=total["local_gb"] - total["local_gb_used"])


class Aggregates:
    def list_aggregates(self: Any) -> Any:
        return tuple(self.aggregates.values())

    def get_aggregate(self: Any, aggregate_id: Any) -> Any:
        return held(self.aggregates, aggregate_id, "Aggregate")

    def _change_aggregate(self: Any, key: int, **fields: Any) -> Any:
        self.aggregates[key] = replace(Aggregates.get_aggregate(self, key), **fields)
        return self.aggregates[key]

    def create_aggregate(self: Any, new: Any) -> Any:
        if any(one.name == new.name for one in self.aggregates.values()):
            raise errors.Conflict(f"Aggregate {new.name} already exists.")
        return self.add_aggregate(new.name, **({ZONE: new.availability_zone} if new.availability_zone else {}))

    def update_aggregate(self: Any, update: Any) -> Any:
        if update.changes_zone:
            Aggregates.set_aggregate_metadata(self, update.id, {ZONE: update.availability_zone})
        return self._change_aggregate(update.id, updated_at=CHANGED, **({"name": update.name} if update.name else {}))

    def set_aggregate_metadata(self: Any, aggregate_id: Any, items: Any) -> Any:
        merged = {**Aggregates.get_aggregate(self, aggregate_id).metadata, **items}
        return self._change_aggregate(aggregate_id, updated_at=CHANGED, metadata={
            key: value for key, value in merged.items() if value is not None})

    def delete_aggregate(self: Any, aggregate_id: Any) -> None:
        if Aggregates.get_aggregate(self, aggregate_id).hosts:
            raise errors.Invalid(f"Cannot delete aggregate {aggregate_id}: it still has hosts.")
        del self.aggregates[aggregate_id]

    def add_aggregate_host(self: Any, aggregate_id: Any, host: Any) -> Any:
        return self._change_aggregate(aggregate_id, hosts=(*Aggregates.get_aggregate(self, aggregate_id).hosts, host))

    def remove_aggregate_host(self: Any, aggregate_id: Any, host: Any) -> Any:
        hosts = Aggregates.get_aggregate(self, aggregate_id).hosts
        return self._change_aggregate(aggregate_id, hosts=tuple(one for one in hosts if one != host))

    def cache_images(self: Any, aggregate_id: Any, image_ids: Any) -> None:
        Aggregates.get_aggregate(self, aggregate_id)


class Usage:
    def get_usage(self: Any, query: Any) -> Any:
        found = after(query.page.marker, sorted(
            (one for one in self.usages if query.project_id in (None, one.project_id)),
            key=lambda one: (one.project_id, one.uuid)), "uuid")
        if query.paged:
            found = found[:query.page.limit]
        projects = sorted({one.project_id for one in found})
        return UsagePage(projects=tuple(self._sum(query, project, found) for project in projects), count=len(found),
                         last=found[-1].uuid if found else None)

    @staticmethod
    def _sum(query: Any, project: str, found: Any) -> Any:
        mine = tuple(one for one in found if one.project_id == project)
        return ProjectUsage(project_id=project, hours=sum(one.hours for one in mine),
                            local_gb_hours=sum(one.hours * one.local_gb for one in mine),
                            memory_mb_hours=sum(one.hours * one.memory_mb for one in mine),
                            vcpu_hours=sum(one.hours * one.vcpus for one in mine),
                            servers=mine if query.servers else ())

    def list_debts(self: Any, host: Any) -> Any:
        return tuple(debt for debt in self.debts if host in (None, debt.host))

    def forgive_debts(self: Any, host: Any) -> Any:
        struck = Usage.list_debts(self, host)
        self.debts = [debt for debt in self.debts if debt not in struck]
        return struck
