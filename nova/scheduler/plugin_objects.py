"""Arguments of filters and weighers in OpenStack's form: a host and a request, with the attributes of its
documentation. They are created for one decision, so that changes by a plug-in are discarded with them."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from typing import Any

from nova.model.host.hosts import AggregateMembers
from nova.model.scheduling.decisions import PlacementRequest
from nova.scheduler.views import HostView

ZONE = "availability_zone"  # the key of an aggregate's metadata


@dataclasses.dataclass
class PluginAggregate:
    """An aggregate of a host."""

    uuid: str
    name: str
    hosts: list[str]
    metadata: dict[str, str]

    @property
    def availability_zone(self) -> str | None:
        """The zone that it gives its hosts."""
        return self.metadata.get(ZONE)

    @classmethod
    def of(cls, members: AggregateMembers) -> PluginAggregate:
        """Return the aggregate in OpenStack's form."""
        return cls(members.uuid, members.name, list(members.hosts), dict(members.metadata))


@dataclasses.dataclass
class Metric:
    """A measurement that a host reported about itself."""

    name: str
    value: float


@dataclasses.dataclass
class PluginHostState:
    """A host at the time of the decision. Memory and disk are the host's own free or used amounts, before allocation
    ratios; the ratios include reserved amounts. ``limits`` is free for plug-ins."""

    host: str
    nodename: str
    uuid: str
    host_ip: str
    hypervisor_type: str
    hypervisor_version: int
    supported_instances: list[list[str]]
    vcpus_total: int
    vcpus_used: int
    total_usable_ram_mb: int
    free_ram_mb: int
    total_usable_disk_gb: int
    free_disk_mb: int
    disk_mb_used: int
    num_instances: int
    num_io_ops: int
    failed_builds: int
    cpu_allocation_ratio: float
    ram_allocation_ratio: float
    disk_allocation_ratio: float
    service: dict[str, Any]
    stats: dict[str, str]
    aggregates: list[PluginAggregate]
    metrics: list[Metric]
    traits: frozenset[str]
    limits: dict[str, Any] = dataclasses.field(default_factory=dict)
    instances: dict[str, Any] = dataclasses.field(default_factory=dict)  # schedulers only know their number

    @property
    def hypervisor_hostname(self) -> str:
        """The node's name."""
        return self.nodename

    @classmethod
    def of(cls, view: HostView) -> PluginHostState:
        """Return the host of a view in OpenStack's form."""
        state = view.state
        vcpus_used = state.vcpus_capacity - view.free_vcpus
        memory_mb_used = state.memory_mb_capacity - view.free_memory_mb
        disk_gb_used = state.disk_gb_capacity - view.free_disk_gb
        return cls(
            host=view.host, nodename=view.node, uuid=state.provider_uuid, host_ip=state.host_ip,
            hypervisor_type=state.hypervisor_type, hypervisor_version=state.hypervisor_version,
            supported_instances=[list(one) for one in state.supported],
            vcpus_total=state.vcpus_total, vcpus_used=vcpus_used,
            total_usable_ram_mb=state.memory_mb_total, free_ram_mb=state.memory_mb_total - memory_mb_used,
            total_usable_disk_gb=state.disk_gb_total, free_disk_mb=(state.disk_gb_total - disk_gb_used) * 1024,
            disk_mb_used=disk_gb_used * 1024, num_instances=state.instances + view.pending, num_io_ops=view.busy,
            failed_builds=state.failed_builds,
            cpu_allocation_ratio=_ratio(state.vcpus_capacity, state.vcpus_total),
            ram_allocation_ratio=_ratio(state.memory_mb_capacity, state.memory_mb_total),
            disk_allocation_ratio=_ratio(state.disk_gb_capacity, state.disk_gb_total),
            service={"host": view.host, "binary": "nova-compute", "disabled": not state.enabled,
                     "disabled_reason": state.disabled_reason, "forced_down": state.forced_down},
            stats=dict(state.capabilities), traits=view.facts.traits,
            aggregates=[PluginAggregate.of(view.known_aggregates[uuid]) for uuid in state.aggregate_uuids
                        if uuid in view.known_aggregates],
            metrics=[Metric(name, value) for name, value in state.metrics.items()])


def _ratio(capacity: int, total: int) -> float:
    return capacity / total if total else 1.0


@dataclasses.dataclass
class PluginFlavor:
    """The flavor, as far as a scheduler knows it. ``root_gb``: the size of all local disks together."""

    name: str
    vcpus: int
    memory_mb: int
    root_gb: int
    extra_specs: dict[str, str]
    ephemeral_gb: int = 0
    swap: int = 0


@dataclasses.dataclass
class ImageMeta:
    """The image, as far as a scheduler knows it."""

    id: str
    disk_format: str
    properties: dict[str, str]


@dataclasses.dataclass
class InstanceGroup:
    """The server group of the request's servers."""

    uuid: str
    policy: str
    hosts: list[str]


@dataclasses.dataclass
class RequestSpec:
    """A request for hosts, for servers that only differ in their UUIDs."""

    project_id: str
    user_id: str
    instance_uuid: str
    num_instances: int
    flavor: PluginFlavor
    image: ImageMeta
    availability_zone: str | None
    scheduler_hints: dict[str, list[Any]]
    instance_group: InstanceGroup | None
    ignore_hosts: list[str]
    force_hosts: list[str] | None
    force_nodes: list[str] | None
    is_rebuild: bool

    @property
    def vcpus(self) -> int:
        """The flavor's VCPUs."""
        return self.flavor.vcpus

    @property
    def memory_mb(self) -> int:
        """The flavor's memory, in MB."""
        return self.flavor.memory_mb

    @property
    def root_gb(self) -> int:
        """The flavor's root disk, in GB."""
        return self.flavor.root_gb

    @property
    def ephemeral_gb(self) -> int:
        """The flavor's ephemeral disk, in GB."""
        return self.flavor.ephemeral_gb

    @property
    def swap(self) -> int:
        """The flavor's swap disk."""
        return self.flavor.swap

    def get_scheduler_hint(self, hint_name: str, default: object = None) -> Any:
        """Return the hint: a single value as itself, several as a list; ``default`` if it was not given."""
        found = self.scheduler_hints.get(hint_name)
        if found is None:
            return default
        return found[0] if len(found) == 1 else found

    @classmethod
    def of(cls, request: PlacementRequest) -> RequestSpec:
        """Return the request in OpenStack's form."""
        need, group = request.resources, request.group
        return cls(
            project_id=request.project_id, user_id=request.user_id, instance_uuid=next(iter(request.server_uuids), ""),
            num_instances=len(request.server_uuids), availability_zone=request.availability_zone,
            flavor=PluginFlavor(request.flavor_name, need.vcpus, need.memory_mb, need.disk_gb,
                                dict(request.extra_specs)),
            image=ImageMeta(request.image_id, request.image_disk_format, dict(request.image_properties)),
            scheduler_hints=_listed(request.hints), ignore_hosts=list(request.exclude),
            instance_group=InstanceGroup(group.uuid, group.policy, list(group.hosts)) if group else None,
            force_hosts=[request.host] if request.host and request.force else None,
            force_nodes=[request.node] if request.node and request.force else None, is_rebuild=request.rebuild)


def _listed(hints: Mapping[str, object]) -> dict[str, list[Any]]:
    """Return every hint as a list, as plug-ins expect."""
    return {name: [value] if isinstance(value, (str, bytes, Mapping)) or not isinstance(value, Iterable) else [*value]
            for name, value in hints.items()}
