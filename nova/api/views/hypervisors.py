"""Hypervisors as the API shows them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from nova.api import versions
from nova.api.request import Request
from nova.api.view import LEFT_OUT, Out, View
from nova.api.views import services
from nova.model.host.services import Hypervisor, HypervisorStatistics, Service


def _service(hypervisor: Hypervisor) -> Service:
    """Return its host's compute service; a deleted one counts as down and disabled."""
    return hypervisor.service or Service(id=0, uuid="00000000-0000-0000-0000-000000000000", host=hypervisor.host,
                                         binary="nova-compute", disabled=True)


def _servers(hypervisor: Hypervisor, req: Request) -> object:
    """Return the servers, if requested (else None). Up to 2.74 an empty list is omitted."""
    if hypervisor.servers is None or not (hypervisor.servers or versions.empty_servers_are_shown(req.version)):
        return LEFT_OUT
    return [{"uuid": server.uuid, "name": server.name} for server in hypervisor.servers]


def _cpu_info(hypervisor: Hypervisor, req: Request) -> object:
    try:
        found = msgspec.json.decode(hypervisor.cpu_info or "{}")
    except msgspec.DecodeError:  # a driver's text, stored unchanged
        return {}
    return found if isinstance(found, dict) else {}


def _shown_service(hypervisor: Hypervisor, req: Request) -> dict[str, object]:
    service = _service(hypervisor)
    return {"host": hypervisor.host, "disabled_reason": service.disabled_reason,
            "id": service.uuid if versions.known_by_uuid(req.version) else service.id}


_NAMES = (
    Out("id", "id", until="2.52"),
    Out("id", "uuid", since="2.53"),
    Out("hypervisor_hostname", "hostname"),
    Out("state", lambda hypervisor, req: services.state(_service(hypervisor)), type="string"),
    Out("status", lambda hypervisor, req: services.status(_service(hypervisor)), type="string"),
)

BRIEF = View(*_NAMES, Out("servers", _servers, optional=True, type=[{"uuid": "string", "name": "string"}]),
             of=Hypervisor)

UPTIME = View(*BRIEF.fields, Out("uptime", "uptime"), of=Hypervisor)

FULL = View(
    *BRIEF.fields,
    Out("hypervisor_type", "type"),
    Out("hypervisor_version", "version"),
    Out("host_ip", lambda hypervisor, req: hypervisor.host_ip or None, type=("string", "null")),
    Out("service", _shown_service,
        type={"host": "string", "disabled_reason": ("string", "null"), "id": ("string", "integer")}),
    Out("uptime", "uptime", since="2.88"),
    Out("cpu_info", "cpu_info", until="2.27"),
    Out("cpu_info", _cpu_info, since="2.28", until="2.87", type="object"),
    Out("vcpus", "vcpus", until="2.87"),
    Out("vcpus_used", "vcpus_used", until="2.87"),
    Out("memory_mb", "memory_mb", until="2.87"),
    Out("memory_mb_used", "memory_mb_used", until="2.87"),
    Out("free_ram_mb", lambda hypervisor, req: hypervisor.memory_mb - hypervisor.memory_mb_used, until="2.87",
        type="integer"),
    Out("local_gb", "local_gb", until="2.87"),
    Out("local_gb_used", "local_gb_used", until="2.87"),
    Out("free_disk_gb", lambda hypervisor, req: hypervisor.local_gb - hypervisor.local_gb_used, until="2.87",
        type="integer"),
    Out("disk_available_least", "disk_available_least_gb", until="2.87"),
    Out("running_vms", "running_vms", until="2.87"),
    Out("current_workload", "current_workload", until="2.87"),
    of=Hypervisor,
)

STATISTICS = View(*(Out(name, name) for name in (
    "count", "vcpus", "vcpus_used", "memory_mb", "memory_mb_used", "local_gb", "local_gb_used", "free_ram_mb",
    "free_disk_gb", "disk_available_least", "running_vms", "current_workload")), of=HypervisorStatistics)


def page(view: View, hypervisors: Sequence[Hypervisor], req: Request, linked: bool) -> dict[str, object]:
    """Return ``hypervisors``, and if ``linked`` the link to the next page: its marker is the last one's UUID, before
    2.53 its number."""
    listed: dict[str, Any] = {"hypervisors": view.all(hypervisors, req)}
    if linked and hypervisors:
        last = hypervisors[-1]
        marker = last.uuid if versions.known_by_uuid(req.version) else str(last.id)
        listed.update(req.next_links("hypervisors_links", hypervisors, marker))
    return listed
