"""Services, hypervisors and zones, as operators see them."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

import msgspec

from nova import errors, failures
from nova.conductor import zones
from nova.conductor.engine.deps import Deps
from nova.db.host import aggregates, carried, host_cleanups, hosts, services
from nova.db.host.service_rows import ServiceRow
from nova.db.placement.claims import DISK_GB, MEMORY_MB, VCPU
from nova.db.sql.engine import Connection
from nova.db.upkeep import orphans
from nova.model.flavor.flavors import Flavor
from nova.model.host.hosts import HostStates, HostUptime, NodeStamp
from nova.model.host.services import (
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

#: Names in the condition of one statement; if there are more, all rows are read.
MOST_NAMED = 1000


class Hosts:
    """The service, host, hypervisor and zone calls of ConductorRPC."""

    def __init__(self, deps: Deps) -> None:
        self.deps = deps

    # -- services

    def list_services(self, query: ServiceQuery) -> tuple[Service, ...]:
        """Return services with their zone and whether they are up, by the database's clock. ``with_unknown``: while the
        cell's database is down, return only its compute hosts, as far as the API database knows them."""
        try:
            with self.deps.cell.reading() as tx:
                rows = services.select(tx, query)
        except errors.Unavailable:
            if not query.with_unknown:
                raise
            return self.unknown_services(query)
        hosts_ = {row.host for row, _clock in rows if row.binary == services.COMPUTE}
        placed = zones.of_hosts(self.deps, _few(hosts_)) if hosts_ else {}
        down = self.deps.settings.service_down_time
        return tuple(services.value(row, clock, down, self._zone(row.binary, row.host, placed)) for row, clock in rows)

    def _zone(self, binary: str, host: str, placed: Mapping[str, str]) -> str:
        settings = self.deps.settings
        return placed.get(host, settings.default_availability_zone) if binary == services.COMPUTE \
            else settings.internal_service_availability_zone

    def unknown_services(self, query: ServiceQuery) -> tuple[Service, ...]:
        """Return the compute hosts that have providers in the API database, for cells whose database is down."""
        if query.uuid is not None or query.id is not None or query.binary not in (None, services.COMPUTE):
            return ()
        with self.deps.api.reading() as tx:
            names = sorted({row.host for row in hosts.providers_of_hosts(tx, query.host)})
        return tuple(Service(id=0, uuid="", host=name, binary=services.COMPUTE, unknown=True) for name in names)

    def update_service(self, update: ServiceUpdate) -> Service:
        """Change the named fields of a service. Schedulers are updated about a nova-compute; a host that counts as up
        again is reminded of its pending cleanups. Raises service.NotFound."""
        row = self.deps.cell.transact(lambda tx: self._update(tx, update))
        if row.binary == services.COMPUTE:
            self.deps.feed.host_changed(row.host)
            if update.forced_down is False:
                self._remind(row.host)
        return self.list_services(ServiceQuery(uuid=row.uuid))[0]

    def _remind(self, host: str) -> None:
        """Remind the host of its cleanups, so that guests rebuilt elsewhere are removed before it is a destination
        again."""
        with self.deps.cell.reading() as tx:
            pending = host in host_cleanups.hosts_with_pending(tx)
        if pending:
            with contextlib.suppress(errors.NovaError):  # its next heartbeat repeats it
                self.deps.compute.look_for_debts(host)

    def _update(self, tx: Connection, update: ServiceUpdate) -> ServiceRow:
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
        """Delete a service, then the host's other rows: after a crash in between, ``zones.ForgottenHosts`` finds
        them."""
        with self.deps.cell.reading() as tx:
            rows = services.select(tx, query)
        if not rows:
            raise errors.service.NotFound(name=query.uuid or str(query.id))
        row = rows[0][0]
        # before it is deleted: a host that registers again under its name has its own providers
        providers = self._unclaimed_providers(row.host) if row.binary == services.COMPUTE else []
        def delete(tx: Connection) -> None:
            services.delete(tx, services.locked(tx, row.uuid, None, None))
            if row.binary == services.COMPUTE:
                orphans.forget_host(tx, row.host)
        self.deps.cell.transact(delete)
        if row.binary == services.COMPUTE:
            self._forget(row.host, providers)

    def _unclaimed_providers(self, host: str) -> list[hosts.HostProvider]:
        """Return a host's providers. Raises Conflict if a server that is not on the host yet has claimed some of them.
        Claims that only wait for a cleanup of the host are removed with them."""
        with self.deps.api.reading() as tx:
            providers = hosts.providers_of_hosts(tx, host)
            claimants = hosts.claimants(tx, [row.id for row in providers])
        if claimants:
            with self.deps.cell.reading() as tx:
                claimants -= carried.cleaned_servers(tx, host)
        if claimants:
            raise errors.service.HasServers()
        return providers

    def _forget(self, host: str, providers: Sequence[hosts.HostProvider]) -> None:
        def forget(tx: Connection) -> bool:
            left = aggregates.forget_hosts(tx, [host])
            hosts.drop_providers(tx, {row.id: row.generation for row in providers})
            return left
        left_aggregates = self.deps.api.transact(forget)
        self.deps.feed.host_gone(host, [row.name for row in providers])
        if left_aggregates:
            self.deps.feed.aggregates_changed()

    # -- hypervisors

    def list_hypervisors(self, query: HypervisorQuery) -> tuple[Hypervisor, ...]:
        """Return hypervisors. Raises host.NotFound if the query names a node that does not exist;
        api.PageMarkerNotFound."""
        found = self.found_hypervisors(query)
        if not found:
            self.refuse_unknown(query)
        return found

    def found_hypervisors(self, query: HypervisorQuery) -> tuple[Hypervisor, ...]:
        """Return hypervisors, also none. Raises api.PageMarkerNotFound."""
        found = self._read(self._wanted(query), query.with_uptime)
        if query.with_servers and found:
            found = self._with(found, "servers", self._servers_by_node(found))
        return tuple(found)

    @staticmethod
    def refuse_unknown(query: HypervisorQuery) -> None:
        """Raise host.HypervisorNotFound if the query names a node."""
        named = query.uuid or (str(query.id) if query.id is not None else None)
        if named is not None:
            raise errors.host.HypervisorNotFound(id=named)

    def has_hypervisor(self, marker: str) -> bool:
        """Return whether a node has this UUID or number."""
        with self.deps.cell.reading() as tx:
            found = hosts.node_id(tx, marker)
        return found is not None and bool(self._read(hosts.NodesWanted(id=found)))

    def _wanted(self, query: HypervisorQuery) -> hosts.NodesWanted:
        """Return the condition of the query. Raises api.PageMarkerNotFound."""
        after = None
        if query.marker is not None:
            with self.deps.cell.reading() as tx:
                after = hosts.node_id(tx, query.marker)
            if after is None:
                raise errors.api.PageMarkerNotFound(marker=query.marker)
        return hosts.NodesWanted(id=query.id, uuid=query.uuid, name_part=query.hostname_pattern, after=after,
                                 limit=query.limit)

    def _read(self, wanted: hosts.NodesWanted, with_uptime: bool = False) -> list[Hypervisor]:
        """Return hypervisors, with three statements in total: without nodes whose UUID is that of another cell's node.
        The uptime is the reported one; a host that is down has none."""
        with self.deps.cell.reading() as tx:
            rows = hosts.node_rows(tx, wanted)
        if not rows:
            return []
        with self.deps.api.reading() as tx:
            providers = hosts.provider_rows(tx, uuids=_few([row.uuid for row in rows]))
            placed = aggregates.zones(tx, _few({row.host for row in rows}))
        rows = [row for row in rows if row.uuid not in providers or hosts.has_provider(row, providers)]
        down = self.deps.settings.service_down_time
        found = [_hypervisor(row, providers.get(row.uuid),
                             services.value(_service_row(row), services.as_time(row.clock), down,
                                            self._zone(row.binary, row.host, placed))) for row in rows]
        return [msgspec.structs.replace(one, uptime=_uptime(one, row)) if with_uptime else one
                for one, row in zip(found, rows, strict=True)]

    def _servers_by_node(self, found: Sequence[Hypervisor]) -> dict[tuple[str, str], tuple[ServerName, ...]]:
        with self.deps.cell.reading() as tx:
            rows = hosts.servers_on(tx, sorted({one.host for one in found}))
        by_node: dict[tuple[str, str], tuple[ServerName, ...]] = {(one.host, one.hostname): () for one in found}
        for row in rows:
            by_node[(row.host, row.node)] = (*by_node.get((row.host, row.node), ()),
                                             ServerName(uuid=row.uuid, name=row.name))
        return by_node

    @staticmethod
    def _with(found: Sequence[Hypervisor], field: str, values: Mapping[tuple[str, str], object]) -> list[Hypervisor]:
        return [msgspec.structs.replace(one, **{field: values.get((one.host, one.hostname))}) for one in found]

    def get_hypervisor_statistics(self) -> HypervisorStatistics:
        """Return sums over all nodes whose nova-compute is not disabled, both up and down, in MiB and GiB."""
        return statistics_of(self._read(hosts.ALL))

    # -- whole hosts

    def get_host_usage(self, host: str) -> HostUsage:
        """Return the usage of all nodes of a host, in MiB and GiB. Promised amounts are those of its servers' flavors,
        by project. Raises host.NotFound."""
        nodes = self._read(hosts.NodesWanted(host=host))
        if not nodes:
            raise errors.host.NotFound(host=host)
        with self.deps.cell.reading() as tx:
            promised = hosts.promised_on(tx, host)
        projects: dict[str, Amounts] = {}
        for row in promised:
            projects[row.project_id] = _plus(projects.get(row.project_id, Amounts()), _of_flavor(row.flavor))
        return HostUsage(
            host=host, projects=projects,
            total=_sum(Amounts(vcpus=one.vcpus, memory_mb=one.memory_mb, disk_gb=one.local_gb) for one in nodes),
            used=_sum(Amounts(vcpus=one.vcpus_used, memory_mb=one.memory_mb_used, disk_gb=one.local_gb_used)
                      for one in nodes), promised=_sum(projects.values()))

    def change_host_power(self, change: HostPowerChange) -> str:
        """Change the host's power through its driver, which may not support it."""
        found = self.list_services(ServiceQuery(host=change.host, binary=services.COMPUTE))
        if not found:
            raise errors.host.NotFound(host=change.host)
        if not found[0].up:
            raise errors.host.Down(host=change.host)
        with failures.replaced(errors.Unavailable, lambda _: errors.host.Down(host=change.host)):
            return str(self.deps.compute.change_host_power(change.host, change.action))

    # -- zones, and the schedulers' states

    def list_zones(self, with_services: bool) -> tuple[Zone, ...]:
        """Return the zones by name. A zone is available while any of its services is not disabled; the internal zone
        always is."""
        return zones_of(self.list_services(ServiceQuery()), self.deps.settings.internal_service_availability_zone,
                        with_services)

    def get_host_states(self, known: tuple[NodeStamp, ...], everything: bool) -> HostStates:
        """Return host states, read from both databases at each call. ``more`` in the result: it did not fit into one
        message."""
        states: HostStates = self.deps.feed.states(known, everything)
        return states


def statistics_of(nodes: Sequence[Hypervisor]) -> HypervisorStatistics:
    """Return the sums over these nodes, without nodes whose nova-compute is disabled."""
    live = [one for one in nodes if one.service is not None and not one.service.disabled]

    def total(field: str) -> int:
        return sum(getattr(one, field) or 0 for one in live)
    return HypervisorStatistics(
        count=len(live), **{field: total(field) for field in (
            "vcpus", "vcpus_used", "memory_mb", "memory_mb_used", "local_gb", "local_gb_used", "running_vms",
            "current_workload")},
        free_ram_mb=total("memory_mb") - total("memory_mb_used"),
        free_disk_gb=total("local_gb") - total("local_gb_used"),
        disk_available_least=total("disk_available_least_gb"))


def zones_of(members: Sequence[Service], internal: str, with_services: bool) -> tuple[Zone, ...]:
    """Return the zones of these services by name; ``internal``: the zone that is always available."""
    by_zone: dict[str, list[Service]] = {}
    for service in members:
        by_zone.setdefault(service.zone, []).append(service)
    return tuple(Zone(name=name, available=name == internal or any(not one.disabled for one in inside),
                      internal=name == internal, services=tuple(inside) if with_services else ())
                 for name, inside in sorted(by_zone.items()))


def _few(names: Collection[str]) -> Collection[str] | None:
    """Return the names for a condition, or None (no condition) if there are too many for one statement."""
    return names if len(names) <= MOST_NAMED else None


def _of_flavor(flavor: Flavor) -> Amounts:
    return Amounts(vcpus=flavor.vcpus, memory_mb=flavor.memory_mb, disk_gb=flavor.root_gb + flavor.ephemeral_gb)


def _plus(one: Amounts, other: Amounts) -> Amounts:
    return Amounts(vcpus=one.vcpus + other.vcpus, memory_mb=one.memory_mb + other.memory_mb,
                   disk_gb=one.disk_gb + other.disk_gb)


def _sum(amounts: Iterable[Amounts]) -> Amounts:
    return functools.reduce(_plus, amounts, Amounts())


def _service_row(row: hosts.NodeRow) -> ServiceRow:
    """Return a node's row in the form of its service's row."""
    return ServiceRow(row.service_id, row.service_uuid, row.host, row.binary, row.topic, row.disabled,
                      row.disabled_reason, row.forced_down, row.last_seen_at, row.created_at, row.updated_at,
                      row.release)


def _uptime(one: Hypervisor, row: hosts.NodeRow) -> str | None:
    uptime: HostUptime | None = row.facts.uptime
    up = one.service is not None and one.service.up
    return uptime.line(services.as_time(row.clock)) if uptime is not None and up else None


def _hypervisor(row: hosts.NodeRow, provider: hosts.NodeProviderRow | None, service: Service) -> Hypervisor:
    facts = row.facts
    used = {name: int(one.used) for name, one in provider.classes.items()} if provider is not None else {}
    return Hypervisor(
        id=row.id, uuid=row.uuid, hostname=row.name, host=row.host, host_ip=facts.host_ip or None,
        type=facts.hypervisor_type, version=facts.hypervisor_version, vcpus=facts.vcpus,
        vcpus_used=used.get(VCPU, 0), memory_mb=facts.memory_mb,
        memory_mb_used=used.get(MEMORY_MB, 0) + facts.reserved_memory_mb, local_gb=facts.local_gb,
        local_gb_used=used.get(DISK_GB, 0) + facts.reserved_disk_gb,
        disk_available_least_gb=facts.disk_available_least_gb,
        running_vms=provider.consumers if provider is not None else 0,
        cpu_info=facts.cpu_info, service=service)
