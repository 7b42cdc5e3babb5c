"""Servers: list, show, create, update, delete."""

from __future__ import annotations

from nova import errors
from nova.api import versions
from nova.api.handlers import server_create, server_lists
from nova.api.handlers.server_targets import check_lock, target
from nova.api.request import Answer, Request
from nova.api.view import LINKS, answers
from nova.api.views import servers as views
from nova.model.base import Json
from nova.model.server.servers import ServerDetail, ServerOrder, ServerQuery, ServerUpdate
from nova.web.formats import canonical_address

EXTENDED_RULE = "os_compute_api:os-extended-server-attributes"
EXTRA_SPECS_RULE = "os_compute_api:servers:show:flavor-extra-specs"
HOST_STATUS_RULE = "os_compute_api:servers:show:host_status"
UNKNOWN_ONLY_RULE = "os_compute_api:servers:show:host_status:unknown-only"

#: name in an update's body -> field of the server
UPDATABLE = {"name": "name", "description": "description", "accessIPv4": "access_ip_v4",
             "accessIPv6": "access_ip_v6", "OS-DCF:diskConfig": "disk_config", "hostname": "hostname",
             "pinned_availability_zone": "pinned_availability_zone"}


def flags(req: Request, project_id: str | None = None) -> frozenset[str]:
    """What policy lets the caller see of servers of a project (None: of the own)."""
    seen = {flag for flag, rule in ((views.EXTENDED, EXTENDED_RULE), (views.EXTRA_SPECS, EXTRA_SPECS_RULE))
            if req.allows(rule, project_id)}
    if req.allows(HOST_STATUS_RULE, project_id):
        seen.add(views.HOST_STATUS)
    elif req.allows(UNKNOWN_ONLY_RULE, project_id):
        seen.add(views.HOST_STATUS_UNKNOWN)
    if req.context.is_admin:
        seen.add(views.ADMIN)
    return frozenset(seen)


@answers({"servers": [(views.BRIEF, views.UNKNOWN_BRIEF)], "servers_links?": LINKS})
def index(req: Request) -> dict[str, Json]:
    """List ids and names of servers, a page at a time; filters that the caller may not use are dropped.
    server.ServersBadFilter, server.ServersBadSort, api.PageMarkerNotFound, api.PageBadRegex (400);
    server.ServersDeletedForbidden, server.ServersSortForbidden (403)."""
    found = req.conductor.list_servers(server_lists.query_of(req, detail=False))
    return views.page(views.BRIEF, found.summaries, req)


@answers({"servers": [(views.FULL, views.UNKNOWN_LISTED)], "servers_links?": LINKS})
def detail(req: Request) -> dict[str, Json]:
    """List servers whole, a page at a time. Which fields are shown depends on policy. Errors as for the list of
    names."""
    found = req.conductor.list_servers(server_lists.query_of(req, detail=True))
    return views.page(views.FULL, found.servers, req, flags(req))


@answers({"server": (views.FULL, views.UNKNOWN)})
def show(req: Request, server_id: str) -> dict[str, Json]:
    """Show one server. From 2.69 a server whose cell does not answer is shown in part. server.NotFound (404)."""
    server = req.conductor.get_server(ServerQuery(uuid=server_id, scope=req.scope(),
                                                  with_unknown=versions.silent_cells_are_shown(req.version)))
    req.authorize(server.project_id, server.user_id)
    view = views.UNKNOWN if server.unknown else views.FULL
    return {"server": view(server, req, flags(req, server.project_id) | {views.ALONE})}


@answers(({"server": views.CREATED}, {"reservation_id": "string"}))
def create(req: Request) -> Answer:
    """Admit a request for servers and begin; what is admitted gets an end, active or error. Answers with the first
    server, or with the reservation's id where the body asks for it. server.BadImage, BadFlavor, BadNetwork, BadKeypair,
    FixedIpInUse and others (400); quota.Exceeded, quota.TooMany (403)."""
    order, password = server_create.order_of(req)
    made = req.conductor.create_servers(order)
    if req.body["server"].get("return_reservation_id"):
        return Answer({"reservation_id": made.reservation_id})
    uuid = made.uuids[0]
    groups = order.security_groups if made.security_groups is None else made.security_groups
    body = views.created(uuid, req, made.disk_config or order.disk_config, groups, password)
    return Answer(body, headers=(("Location", req.links.self_of("servers", uuid)),))


@answers({"server": (views.FULL, views.UPDATED)})
def update(req: Request, server_id: str) -> dict[str, Json]:
    """Change fields of a server that change nothing on its host; others stay. server.NotFound (404); server.PinConflict
    (409)."""
    asked = req.body["server"]
    found = target(req, server_id)
    if asked.get("pinned_availability_zone") is not None:
        _check_pin(req, server_id, asked["pinned_availability_zone"])
    values = {UPDATABLE[name]: value for name, value in asked.items()}
    if "name" in values:
        values["name"] = values["name"].strip()
    values |= {name: canonical_address(values[name]) for name in ("access_ip_v4", "access_ip_v6") if name in values}
    change = ServerUpdate(uuid=server_id, scope=req.scope(), fields=tuple(values), **values)
    server = req.conductor.update_server(change)
    view = views.FULL if versions.update_answers_in_full(req.version) else views.UPDATED
    return {"server": view(server, req, flags(req, found.project_id) | {views.ALONE})}


def _check_pin(req: Request, server_id: str, zone: str) -> None:
    """server.PinConflict unless ``zone`` is where the server is, or is pinned to already."""
    server: ServerDetail = req.conductor.get_server(ServerQuery(uuid=server_id, scope=req.scope(), as_kept=True))
    pinned = server.pinned_availability_zone
    if zone != pinned and (pinned is not None or zone != server.availability_zone):
        raise errors.server.PinConflict(uuid=server_id, zone=zone, current=server.availability_zone or "none")


def delete(req: Request, server_id: str) -> None:
    """Begin to delete a server. The answer comes before the server is gone. server.NotFound (404); server.Locked
    (409)."""
    check_lock(req, target(req, server_id))
    req.conductor.order_server(ServerOrder(uuid=server_id, action="delete"))
