"""Services, hypervisors and zones: what operators see of the daemons and hosts."""

from __future__ import annotations

import contextlib
import contextvars
import time
from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from nova import concurrency, errors
from nova.conductor.world import World
from nova.db import hosts, services
from nova.db.engine import Connection
from nova.db.ledger import DISK_GB, MEMORY_MB, VCPU
from nova.db.server_lists import NoSuchMarker
from nova.model.hosts import HostStates, Stamp
from nova.model.services import (
    Hypervisor,
    HypervisorQuery,
    HypervisorStatistics,
    ServerName,
    Service,
    ServiceQuery,
    ServiceUpdate,
    Zone,
)

#: One page's uptimes: calls at a time, and seconds for all of them together.
UPTIMES_AT_ONCE, UPTIME_S = 32, 10.0


class NoSuchHypervisor(errors.NotFound):
    code, message = "hypervisor.not_found", "Compute host {name} could not be found."


class Hosts:
    """The service, hypervisor and zone calls of ConductorRPC."""

    def __init__(self, world: World) -> None:
        self.world = world

    def zone_of(self, binary: str) -> str:
        settings = self.world.settings
        return settings.default_availability_zone if binary == "nova-compute" \
            else settings.internal_service_availability_zone

    # -- services

    def list_services(self, query: ServiceQuery) -> tuple[Service, ...]:
        with self.world.cell.reading() as tx:
            rows = services.select(tx, query)
        return tuple(services.value(row, clock, self.world.settings.service_down_time, self.zone_of(row.binary))
                     for row, clock in rows)

    def update_service(self, update: ServiceUpdate) -> Service:
        row = self.world.cell.transact(lambda tx: self._update(tx, update))
        self.world.feed.host_changed(row.host)
        return self.list_services(ServiceQuery(uuid=row.uuid))[0]

    def _update(self, tx: Connection, update: ServiceUpdate) -> Any:
        row = services.locked(tx, update.uuid, update.host, update.binary)
        changes: dict[str, Any] = {}
        if update.disabled is not None:
            changes = {"disabled": update.disabled, "disabled_reason": update.disabled_reason}
        elif update.disabled_reason is not None:
            changes = {"disabled_reason": update.disabled_reason}
        if update.forced_down is not None:
            changes["forced_down"] = update.forced_down
        if changes:
            services.update(tx, row.id, changes)
        return row

    def delete_service(self, query: ServiceQuery) -> None:
        rows = self.list_services(query)
        if not rows:
            raise services.NoSuchService(name=query.uuid or str(query.id))

        def take_out(tx: Connection) -> None:
            services.delete(tx, services.locked(tx, rows[0].uuid, None, None))
        self.world.cell.transact(take_out)
        if rows[0].binary == "nova-compute":
            self.world.api.transact(lambda tx: hosts.drop_providers(tx, rows[0].host))
            self.world.feed.host_changed()

    # -- hypervisors

    def list_hypervisors(self, query: HypervisorQuery) -> tuple[Hypervisor, ...]:
        found = self._page(self._all(), query)
        named = query.uuid or (str(query.id) if query.id is not None else None)
        if named is not None and not found:
            raise NoSuchHypervisor(name=named)
        if query.with_servers and found:
            found = self._with(found, "servers", self._servers_by_node(found))
        if query.with_uptime:
            found = self._with(found, "uptime", self._uptimes(found))
        return tuple(found)

    def _all(self) -> list[Hypervisor]:
        with self.world.cell.reading() as tx:
            rows = hosts.node_rows(tx)
        with self.world.api.reading() as tx:
            providers = hosts.provider_rows(tx)
        down = self.world.settings.service_down_time
        return [_hypervisor(row, providers.get(row.uuid),
                            services.value(_service_row(row), services.as_time(row.clock), down,
                                           self.zone_of("nova-compute"))) for row in rows]

    def _page(self, rows: list[Hypervisor], query: HypervisorQuery) -> list[Hypervisor]:
        tests: list[Callable[[Hypervisor], bool]] = []
        if query.id is not None:
            tests.append(lambda one: one.id == query.id)
        if query.uuid is not None:
            tests.append(lambda one: one.uuid == query.uuid)
        if query.hostname_pattern is not None:
            tests.append(lambda one: str(query.hostname_pattern) in one.hostname)
        found = [one for one in rows if all(test(one) for test in tests)]
        if query.marker is not None:
            places = [index for index, one in enumerate(found) if query.marker in (one.uuid, str(one.id))]
            if not places:
                raise NoSuchMarker(marker=query.marker)
            found = found[places[0] + 1:]
        most = self.world.settings.max_limit
        return found[:most if query.limit is None else min(query.limit, most)]

    def _servers_by_node(self, found: Sequence[Hypervisor]) -> dict[tuple[str, str], tuple[ServerName, ...]]:
        with self.world.cell.reading() as tx:
            rows = hosts.servers_on(tx, sorted({one.host for one in found}))
        by_node: dict[tuple[str, str], tuple[ServerName, ...]] = {(one.host, one.hostname): () for one in found}
        for row in rows:
            by_node[(row.host, row.node)] = (*by_node.get((row.host, row.node), ()),
                                             ServerName(uuid=row.uuid, name=row.name))
        return by_node

    @staticmethod
    def _with(found: Sequence[Hypervisor], field: str, values: dict[tuple[str, str], Any]) -> list[Hypervisor]:
        return [msgspec.structs.replace(one, **{field: values.get((one.host, one.hostname))}) for one in found]

    def _uptimes(self, found: Sequence[Hypervisor]) -> dict[tuple[str, str], str]:
        """By node: the uptimes of hosts that are up, asked side by side. Who has not answered in time has none."""
        up = sorted({one.host for one in found if one.service is not None and one.service.up})
        if not up:
            return {}
        until = time.monotonic() + UPTIME_S
        pool = concurrency.Pool(min(len(up), UPTIMES_AT_ONCE), "uptimes")
        asked = {host: pool.submit(contextvars.copy_context().run, self._uptime, host) for host in up}
        told = {}
        for host, answer in asked.items():
            with contextlib.suppress(TimeoutError):
                told[host] = answer.result(max(0.0, until - time.monotonic()))
        pool.shutdown(wait=False)
        return {(one.host, one.hostname): told[one.host] for one in found if told.get(one.host)}

    def _uptime(self, host: str) -> str:
        """Empty when the host does not answer, or its driver has none."""
        try:
            return str(self.world.compute.get_host_uptime(host))
        except errors.NovaError:
            return ""

    def get_hypervisor_statistics(self) -> HypervisorStatistics:
        live = [one for one in self._all() if one.service is not None and not one.service.disabled]
        def total(field: str) -> int:
            return sum(getattr(one, field) or 0 for one in live)
        return HypervisorStatistics(
            count=len(live), **{field: total(field) for field in (
                "vcpus", "vcpus_used", "memory_mb", "memory_mb_used", "local_gb", "local_gb_used", "running_vms",
                "current_workload")},
            free_ram_mb=total("memory_mb") - total("memory_mb_used"),
            free_disk_gb=total("local_gb") - total("local_gb_used"),
            disk_available_least=total("disk_available_least_gb"))

    # -- zones, and the schedulers' states

    def list_zones(self, with_services: bool) -> tuple[Zone, ...]:
        by_zone: dict[str, list[Service]] = {}
        for service in self.list_services(ServiceQuery()):
            by_zone.setdefault(service.zone, []).append(service)
        internal = self.world.settings.internal_service_availability_zone
        zones = []
        for name, members in sorted(by_zone.items()):
            available = name == internal or any(not one.disabled for one in members)
            zones.append(Zone(name=name, available=available, internal=name == internal,
                              services=tuple(members) if with_services else ()))
        return tuple(zones)

    def get_host_states(self, known: tuple[Stamp, ...], everything: bool) -> HostStates:
        states: HostStates = self.world.feed.states(known, everything)
        return states


class _Row:
    """A node's row read as its service's."""

    def __init__(self, row: Any) -> None:
        self.id, self.uuid = row.service_id, row.service_uuid
        for name in ("host", "binary", "topic", "disabled", "disabled_reason", "forced_down", "last_seen_at",
                     "created_at", "updated_at", "release"):
            setattr(self, name, getattr(row, name))


def _service_row(row: Any) -> Any:
    return _Row(row)


def _hypervisor(row: Any, provider: dict[str, Any] | None, service: Service) -> Hypervisor:
    facts, classes = row.facts, (provider or {}).get("classes", {})
    used = {name: classes[name][3] for name in classes}
    return Hypervisor(
        id=row.id, uuid=row.uuid, hostname=row.name, host=row.host, host_ip=facts.host_ip or None,
        type=facts.hypervisor_type, version=facts.hypervisor_version, vcpus=facts.vcpus,
        vcpus_used=used.get(VCPU, 0), memory_mb=facts.memory_mb,
        memory_mb_used=used.get(MEMORY_MB, 0) + facts.reserved_memory_mb, local_gb=facts.local_gb,
        local_gb_used=used.get(DISK_GB, 0) + facts.reserved_disk_gb,
        disk_available_least_gb=facts.disk_available_least_gb, running_vms=(provider or {}).get("consumers", 0),
        cpu_info=facts.cpu_info, service=service)
