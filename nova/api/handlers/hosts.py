"""Hosts, as in versions up to 2.42: lists, usage, power actions and maintenance."""

from __future__ import annotations

from typing import Any

from nova import errors
from nova.api.request import Request
from nova.api.view import answers
from nova.api.views import hosts as views
from nova.api.views.services import status
from nova.model.host.services import HostPowerChange, ServiceQuery, ServiceUpdate

COMPUTE = "nova-compute"


@answers({"hosts": [{"host_name": "string", "service": "string", "zone": "string"}]})
def index(req: Request) -> dict[str, object]:
    """List the services, one entry for each with its host and zone; ``zone`` in the query filters them. The list is not
    paged."""
    zone = req.query.one("zone") or None  # blank: every zone
    found = req.conductor.list_services(ServiceQuery())
    return views.listed([service for service in found if zone in (None, service.zone)])


@answers({"host": [{"resource": views.RESOURCE}]})
def show(req: Request, host_name: str) -> dict[str, object]:
    """Show the resources of a compute host and their usage by project (MiB, GiB). Raises host.NotFound (404)."""
    return views.usage(req.conductor.get_host_usage(host_name))


@answers({"host": "string", "status?": "string", "maintenance_mode?": "string"})
def update(req: Request, host_name: str) -> dict[str, object]:
    """Change the status or the maintenance mode of a host. Maintenance comes first, because the driver may refuse it:
    then nothing was changed."""
    if not req.conductor.list_services(ServiceQuery(host=host_name, binary=COMPUTE)):
        raise errors.host.NotFound(host=host_name)
    shown: dict[str, Any] = {"host": host_name}
    if "maintenance_mode" in req.body:
        action = "maintenance_on" if _on(req.body["maintenance_mode"]) else "maintenance_off"
        shown["maintenance_mode"] = req.conductor.change_host_power(HostPowerChange(host=host_name, action=action))
    if "status" in req.body:
        service = req.conductor.update_service(ServiceUpdate(host=host_name, binary=COMPUTE,
                                                             disabled=not _on(req.body["status"])))
        shown["status"] = status(service)
    return shown


def _on(word: str) -> bool:
    return word.lower() == "enable"


@answers({"host": "string", "power_action": "string"})
def startup(req: Request, host_name: str) -> dict[str, object]:
    """Ask the host's driver to start the host. Raises host.NotFound (404); host.Down (400); host.NoPowerActions
    (501)."""
    return _power(req, host_name, "startup")


@answers({"host": "string", "power_action": "string"})
def shutdown(req: Request, host_name: str) -> dict[str, object]:
    """Ask the host's driver to shut the host down. Raises host.NotFound (404); host.Down (400); host.NoPowerActions
    (501)."""
    return _power(req, host_name, "shutdown")


@answers({"host": "string", "power_action": "string"})
def reboot(req: Request, host_name: str) -> dict[str, object]:
    """Ask the host's driver to reboot the host. Raises host.NotFound (404); host.Down (400); host.NoPowerActions
    (501)."""
    return _power(req, host_name, "reboot")


def _power(req: Request, host_name: str, action: str) -> dict[str, object]:
    answer = req.conductor.change_host_power(HostPowerChange(host=host_name, action=action))
    return {"host": host_name, "power_action": answer}
