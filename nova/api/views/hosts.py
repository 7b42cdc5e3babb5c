"""Hosts as the old versions of the API show them."""

from __future__ import annotations

from collections.abc import Sequence

from nova.model.host.services import Amounts, HostUsage, Service

RESOURCE = {"host": "string", "project": "string", "cpu": "integer", "memory_mb": "integer", "disk_gb": "integer"}


def listed(services: Sequence[Service]) -> dict[str, object]:
    """Return one entry for each service, with its host's name."""
    return {"hosts": [{"host_name": service.host, "service": service.topic or service.binary.removeprefix("nova-"),
                       "zone": service.zone} for service in services]}


def usage(host: HostUsage) -> dict[str, object]:
    """Return the resources, their usage (including other programs on the host), and the flavors' sums: total and by
    project."""
    lines = [("(total)", host.total), ("(used_now)", host.used), ("(used_max)", host.promised),
             *sorted(host.projects.items())]
    return {"host": [{"resource": _resource(host.host, name, amounts)} for name, amounts in lines]}


def _resource(host: str, project: str, amounts: Amounts) -> dict[str, object]:
    return {"host": host, "project": project, "cpu": amounts.vcpus, "memory_mb": amounts.memory_mb,
            "disk_gb": amounts.disk_gb}
