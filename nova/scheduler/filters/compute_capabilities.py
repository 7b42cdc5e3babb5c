"""ComputeCapabilitiesFilter: the host's facts meet the flavor's extra specs.

It checks specs named ``capabilities:NAME``, and specs without a namespace whose name is a fact of the host: other names
are ignored as notes. A fact inside another one is named with more colons (``capabilities:cpu_info:vendor``).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping

from nova.model.scheduling.decisions import PlacementRequest
from nova.scheduler import operators
from nova.scheduler.filters import Filter
from nova.scheduler.views import HostView

SCOPE = "capabilities"

#: Facts that only depend on ``host.facts``.
_STATIC: dict[str, Callable[[HostView], object]] = {
    "hypervisor_type": lambda host: host.facts.hypervisor_type,
    "hypervisor_version": lambda host: host.facts.hypervisor_version,
    "supported_instances": lambda host: host.facts.supported,
    "supported_hv_specs": lambda host: host.facts.supported,
}

#: Facts of a single host, or that change with its usage. Memory in MB, disk in GB or MB by name.
_OWN: dict[str, Callable[[HostView], object]] = {
    "host": lambda host: host.host,
    "hypervisor_hostname": lambda host: host.node,
    "nodename": lambda host: host.node,
    "id": lambda host: host.provider_id,
    "vcpus": lambda host: host.state.vcpus_total,
    "vcpus_total": lambda host: host.state.vcpus_total,
    "vcpus_used": lambda host: host.state.vcpus_used,
    "memory_mb": lambda host: host.state.memory_mb_total,
    "total_usable_ram_mb": lambda host: host.state.memory_mb_total,
    "memory_mb_used": lambda host: host.state.memory_mb_used,
    "free_ram_mb": lambda host: host.free_memory_mb,
    "local_gb": lambda host: host.state.disk_gb_total,
    "total_usable_disk_gb": lambda host: host.state.disk_gb_total,
    "local_gb_used": lambda host: host.state.disk_gb_used,
    "disk_mb_used": lambda host: host.state.disk_gb_used * 1024,
    "free_disk_gb": lambda host: host.free_disk_gb,
    "free_disk_mb": lambda host: host.free_disk_gb * 1024,
    "running_vms": lambda host: host.state.instances,
    "num_instances": lambda host: host.state.instances,
    "host_ip": lambda host: host.state.host_ip,
    "failed_builds": lambda host: host.state.failed_builds,
    "metrics": lambda host: host.state.metrics,
}

_MISSING = object()


def fact(host: HostView, path: list[str]) -> object:
    """Return a host's fact by its path of names; None if the host does not have it."""
    value = _value(host, path)
    return None if value is _MISSING else value


class ComputeCapabilitiesFilter(Filter):
    reads = ("extra_specs",)

    def wanted(self, request: PlacementRequest) -> bool:
        return any(_name(key) for key in request.extra_specs)

    def about(self, request: PlacementRequest) -> object:
        return {key: wanted for key, wanted in request.extra_specs.items() if _name(key)}

    def by_facts(self, request: PlacementRequest) -> bool:
        return not any((_name(key) or [""])[0] in _OWN for key in request.extra_specs)

    def refuses(self, host: HostView, request: PlacementRequest) -> str | None:
        for key, wanted in request.extra_specs.items():
            name = _name(key)
            if not name:
                continue
            value = _value(host, name)
            if value is _MISSING and ":" not in key:
                continue
            if value is _MISSING:
                return f"no capability {':'.join(name)}"
            if not operators.meets(value, wanted):
                return f"{':'.join(name)} is not {wanted}"
        return None


def _name(key: str) -> list[str]:
    """Return the path of the fact that an extra spec names; empty if the spec belongs to another filter."""
    scope, *path = key.split(":")
    if not path:
        return [scope]
    return path if scope == SCOPE else []


def _value(host: HostView, path: list[str]) -> object:
    """Return a host's fact: reported by its driver under that name, or known to nova for every host."""
    capabilities = host.facts.capabilities
    whole = ":".join(path)
    if whole in capabilities:
        return capabilities[whole]
    read = _STATIC.get(path[0]) or _OWN.get(path[0])
    value: object = capabilities.get(path[0], _MISSING) if read is None else read(host)
    for part in path[1:]:
        value = _inside(value, part)
    return value


def _inside(value: object, part: str) -> object:
    """Return a member of a fact that is an object or its JSON text."""
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except ValueError:
            return _MISSING
    return value.get(part, _MISSING) if isinstance(value, Mapping) else _MISSING
