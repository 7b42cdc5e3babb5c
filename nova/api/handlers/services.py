"""Services of the cloud's hosts, and availability zones."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypedDict

from nova import errors
from nova.api import versions
from nova.api.request import Request
from nova.api.view import answers
from nova.api.views import services as views
from nova.model.host.services import Service, ServiceQuery, ServiceUpdate
from nova.web.formats import is_uuid

CHANGEABLE = "nova-compute"


@answers({"services": [(views.FULL, views.UNKNOWN)]})
def index(req: Request) -> dict[str, object]:
    """List the services with their states and zones; ``host`` and ``binary`` filter them. From 2.69 services of a cell
    that does not answer are shown partially. The list is not paged."""
    query = ServiceQuery(host=req.query.one("host"), binary=req.query.one("binary"),
                         with_unknown=versions.silent_cells_are_shown(req.version))
    return views.listed(req.conductor.list_services(query), req)


@answers({"service": "object"})
def update(req: Request, service_id: str) -> dict[str, object]:
    """Enable, disable or force down a nova-compute, given by its UUID from 2.53; before, the path has the action and
    the body the service. Raises service.NotFound, service.NoSuchWord (404); service.BadId, NotACompute, NothingAsked,
    ReasonWithoutDisable, MissingField (400)."""
    if versions.known_by_uuid(req.version):
        return _update_by_uuid(req, service_id)
    return _update_by_word(req, service_id)


def delete(req: Request, service_id: str) -> None:
    """Delete a service, given by UUID from 2.53, before by number. Raises service.BadId (400); service.NotFound (404);
    service.HasServers, service.HasMigrations, service.OwesCleanups (409)."""
    if versions.known_by_uuid(req.version):
        query = ServiceQuery(uuid=_uuid(service_id))
    else:
        query = ServiceQuery(id=_number(service_id))
    req.conductor.delete_service(query)


def _uuid(id: str) -> str:
    if not is_uuid(id):
        raise errors.service.BadId(id=id, wanted="a UUID")
    return id


def _number(id: str) -> int:
    if not id.isascii() or not id.isdigit() or len(id) > 18:
        raise errors.service.BadId(id=id, wanted="a number")
    return int(id)


def _check_compute(binary: str) -> None:
    if binary != CHANGEABLE:
        raise errors.service.NotACompute(binary=binary)


# up to 2.52: the last part of the path is the action, the body names the service

class ServiceBody(TypedDict, total=False):
    """Members of a validated body: a service and its changes."""

    host: str
    binary: str
    status: str
    disabled_reason: str | None
    forced_down: bool


class ServiceChange(TypedDict, total=False):
    """The fields of a ServiceUpdate that a request changes."""

    disabled: bool
    disabled_reason: str | None
    forced_down: bool


def _disable_with_reason(body: ServiceBody) -> ServiceChange:
    if "disabled_reason" not in body:
        raise errors.service.MissingField(name="disabled_reason", word="disable-log-reason")
    return {"disabled": True, "disabled_reason": body["disabled_reason"]}


def _force_down(body: ServiceBody) -> ServiceChange:
    if "forced_down" not in body:
        raise errors.service.MissingField(name="forced_down", word="force-down")
    return {"forced_down": body["forced_down"]}


#: action -> (body to changes, service to response)
WORDS: dict[str, tuple[Callable[[ServiceBody], ServiceChange], Callable[[Service], dict[str, object]]]] = {
    "enable": (lambda body: {"disabled": False}, lambda service: {"status": views.status(service)}),
    "disable": (lambda body: {"disabled": True}, lambda service: {"status": views.status(service)}),
    "disable-log-reason": (_disable_with_reason, lambda service: {
        "status": views.status(service), "disabled_reason": service.disabled_reason}),
    "force-down": (_force_down, lambda service: {"forced_down": service.forced_down}),
}


def _update_by_word(req: Request, word: str) -> dict[str, object]:
    if word not in WORDS or (word == "force-down" and not versions.services_can_be_forced_down(req.version)):
        raise errors.service.NoSuchWord(word=word)
    change, shown = WORDS[word]
    host, binary = req.body["host"], req.body["binary"]
    _check_compute(binary)
    service = req.conductor.update_service(ServiceUpdate(host=host, binary=binary, **change(req.body)))
    return {"service": {"host": host, "binary": binary, **shown(service)}}


# from 2.53: the path names the service, the body has the changes

def _update_by_uuid(req: Request, uuid: str) -> dict[str, object]:
    _uuid(uuid)
    change = _change(req.body)
    found = req.conductor.list_services(ServiceQuery(uuid=uuid))
    if not found:
        raise errors.service.NotFound(name=uuid)
    _check_compute(found[0].binary)
    return {"service": views.FULL(req.conductor.update_service(ServiceUpdate(uuid=uuid, **change)), req)}


def _change(body: ServiceBody) -> ServiceChange:
    """Return the fields of a ServiceUpdate. Raises service.NothingAsked, service.ReasonWithoutDisable."""
    if not body:
        raise errors.service.NothingAsked
    change: ServiceChange = {}
    if "status" in body:
        change["disabled"] = body["status"] == "disabled"
    if "disabled_reason" in body:
        if not change.get("disabled"):
            raise errors.service.ReasonWithoutDisable
        change["disabled_reason"] = body["disabled_reason"]
    if "forced_down" in body:
        change["forced_down"] = body["forced_down"]
    return change


# availability zones

@answers(views.ZONES)
def zones(req: Request) -> dict[str, object]:
    """List the availability zones of compute hosts, without hosts. A zone is available while one of its services is
    enabled."""
    return views.zones(req.conductor.list_zones(False), with_hosts=False)


@answers(views.ZONES)
def zones_detail(req: Request) -> dict[str, object]:
    """List all availability zones, including the internal one, each with its hosts and their services' states."""
    return views.zones(req.conductor.list_zones(True), with_hosts=True)
