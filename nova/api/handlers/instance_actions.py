"""The action log of a server: its actions and their events."""

from __future__ import annotations

from nova.api import versions
from nova.api.handlers.server_lists import changes
from nova.api.request import Request
from nova.api.view import LINKS, answers
from nova.api.views import instance_actions as views
from nova.model.server.actions import ActionQuery

EVENTS_RULE = "os_compute_api:os-instance-actions:events"
DETAILS_RULE = "os_compute_api:os-instance-actions:events:details"


@answers({"instanceActions": [views.ACTION], "links?": LINKS})
def index(req: Request, server_id: str) -> dict[str, object]:
    """List a server's actions, newest first; paged from 2.58. From 2.21 also actions of a deleted server. Raises
    server.NotFound (404); api.PageMarkerNotFound (400)."""
    pages = versions.actions_have_pages(req.version)
    since, before = changes(req)
    actions = req.conductor.list_actions(ActionQuery(
        server_uuid=server_id, project_id=req.scope().project_id, limit=req.limit() if pages else None,
        marker=req.query.one("marker"), changes_since=since, changes_before=before,
        with_deleted=versions.shows_actions_of_deleted(req.version)))
    req.authorize()  # the scope restricts a non-admin to servers of the own project
    last = actions[-1].request_id if actions else None
    return {"instanceActions": views.ACTION.all(actions, req),
            **(req.next_links("links", actions, last) if pages else {})}


@answers({"instanceAction": views.WHOLE})
def show(req: Request, server_id: str, request_id: str) -> dict[str, object]:
    """Show one action of a server by its request's id. Its events are shown to all readers from 2.51; before, policy
    decides. Raises server.NotFound, server.ActionNotFound (404)."""
    action = req.conductor.get_action(ActionQuery(
        server_uuid=server_id, project_id=req.scope().project_id, request_id=request_id,
        with_deleted=versions.shows_actions_of_deleted(req.version)))
    req.authorize()
    flags = {flag for flag, rule in ((views.EVENTS, EVENTS_RULE), (views.DETAILS, DETAILS_RULE)) if req.allows(rule)}
    shown = views.ACTION(action, req)
    if versions.events_are_for_all_readers(req.version) or views.EVENTS in flags:
        named = [event for event in action.events if event.event]  # steps that are internal have no name
        shown["events"] = [views.event(action, event, req, frozenset(flags)) for event in named]
    return {"instanceAction": shown}
