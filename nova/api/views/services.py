"""Services as the API shows them, and the zones they are in."""

from __future__ import annotations

from typing import Any

from nova.api.request import Request
from nova.api.view import Free, Out, View, micros
from nova.model.host.services import SERVICE_DOWN, SERVICE_UP, Service, Zone


def status(service: Service) -> str:
    """Return ``enabled``, or ``disabled`` if operators excluded the service from scheduling."""
    return "disabled" if service.disabled else "enabled"


def state(service: Service) -> str:
    """Return ``up``, or ``down`` if the service does not send heartbeats."""
    return SERVICE_UP if service.up else SERVICE_DOWN


def reported(service: Service) -> str | None:
    """Return the time of the last heartbeat, from which operators see how long a service has been down."""
    return micros(service.last_seen_at or service.updated_at)


FULL = View(
    Out("id", "id", until="2.52"),
    Out("id", "uuid", since="2.53"),
    Out("binary", "binary"),
    Out("host", "host"),
    Out("zone", "zone"),
    Out("status", lambda service, req: status(service), type="string"),
    Out("state", lambda service, req: state(service), type="string"),
    Out("updated_at", lambda service, req: reported(service), type=("string", "null")),
    Out("disabled_reason", "disabled_reason"),
    Out("forced_down", "forced_down", since="2.11"),
    of=Service,
)

UNKNOWN = View(Out("binary", "binary"), Out("host", "host"), Out("status", lambda service, req: "UNKNOWN",
    type="string"), of=Service)


ZONES = {"availabilityZoneInfo": [{
    "zoneName": "string", "zoneState": {"available": "boolean"},
    "hosts": (Free(Free({"active": "boolean", "available": "boolean", "updated_at": ("string", "null")})), "null")}]}


def zones(found: tuple[Zone, ...], with_hosts: bool) -> dict[str, object]:
    """Return the availability zones; the internal one only in the list with hosts."""
    return {"availabilityZoneInfo": [
        {"zoneName": zone.name, "zoneState": {"available": zone.available},
         "hosts": _hosts(zone) if with_hosts else None}
        for zone in found if with_hosts or not zone.internal]}


def _hosts(zone: Zone) -> dict[str, dict[str, object]]:
    """Return host -> binary -> whether the service is enabled and up."""
    hosts: dict[str, dict[str, Any]] = {}
    for service in zone.services:
        hosts.setdefault(service.host, {})[service.binary] = {
            "active": not service.disabled, "available": service.up, "updated_at": reported(service)}
    return hosts


def listed(services: tuple[Service, ...], req: Request) -> dict[str, object]:
    """Return the list of services. A service whose cell does not answer is shown only with its names."""
    return {"services": [UNKNOWN(one, req) if one.unknown else FULL(one, req) for one in services]}
