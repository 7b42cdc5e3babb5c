"""Handlers of servers: list, show, create, update, delete."""

from __future__ import annotations

from nova import errors
from nova.api import versions
from nova.api.handlers import server_create, server_lists
from nova.api.handlers.server_targets import check_lock, target
from nova.api.request import Answer, Request
from nova.api.view import LINKS, answers
from nova.api.views import servers as views
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
    """Return the parts of a project's servers that policy lets the caller see (None: the own project)."""
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
def index(req: Request) -> dict[str, object]:
    """List ids and names of servers, page by page; filters that the caller may not use are ignored. Raises
    server.ServersBadFilter, server.ServersBadSort, api.PageMarkerNotFound, api.PageBadRegex (400);
    server.ServersDeletedForbidden, server.ServersSortForbidden (403)."""
    found = req.conductor.list_servers(server_lists.query_of(req, detail=False))
    return views.page(views.BRIEF, found.summaries, req)


@answers({"servers": [(views.FULL, views.UNKNOWN_LISTED)], "servers_links?": LINKS})
def detail(req: Request) -> dict[str, object]:
    """List servers with details, page by page. Policy decides which fields are shown. Errors as for the list of
    names."""
    found = req.conductor.list_servers(server_lists.query_of(req, detail=True))
    return views.page(views.FULL, found.servers, req, flags(req))


@answers({"server": (views.FULL, views.UNKNOWN)})
def show(req: Request, server_id: str) -> dict[str, object]:
    """Show one server. From 2.69 a server whose cell does not answer is shown partially. Raises server.NotFound
    (404)."""
    server = req.conductor.get_server(ServerQuery(uuid=server_id, scope=req.scope(),
                                                  with_unknown=versions.silent_cells_are_shown(req.version)))
    req.authorize(server.project_id, server.user_id)
    view = views.UNKNOWN if server.unknown else views.FULL
    return {"server": view(server, req, flags(req, server.project_id) | {views.ALONE})}


@answers(({"server": views.CREATED}, {"reservation_id": "string"}))
def create(req: Request) -> Answer:
    """Admit a request for servers and start to create them; each admitted server ends active or in error. Returns the
    first server, or the reservation's id if the body requests it. Raises server.BadImage, BadFlavor, BadNetwork,
    BadKeypair, FixedIpInUse and others (400); quota.Exceeded, quota.TooMany (403)."""
    order, password = server_create.order_of(req)
    made = req.conductor.create_servers(order)
    if req.body["server"].get("return_reservation_id"):
        return Answer({"reservation_id": made.reservation_id})
    uuid = made.uuids[0]
    groups = order.security_groups if made.security_groups is None else made.security_groups
    body = views.created(uuid, req, made.disk_config or order.disk_config, groups, password)
    return Answer(body, headers=(("Location", req.links.self_of("servers", uuid)),))


@answers({"server": (views.FULL, views.UPDATED)})
def update(req: Request, server_id: str) -> dict[str, object]:
    """Change fields of a server that do not affect its host; others stay. Raises server.NotFound (404);
    server.PinConflict (409)."""
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
    """Raise server.PinConflict unless the server is in ``zone``, or is pinned to it already."""
    server: ServerDetail = req.conductor.get_server(ServerQuery(uuid=server_id, scope=req.scope(), as_kept=True))
    pinned = server.pinned_availability_zone
    if zone != pinned and (pinned is not None or zone != server.availability_zone):
        raise errors.server.PinConflict(uuid=server_id, zone=zone, current=server.availability_zone or "none")


def delete(req: Request, server_id: str) -> None:
    """Start to delete a server; responds before the server is deleted. Raises server.NotFound (404); server.Locked
    (409)."""
    check_lock(req, target(req, server_id))
    req.conductor.order_server(ServerOrder(uuid=server_id, action="delete"))
