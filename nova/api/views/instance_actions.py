"""A server's actions and their events as the API shows them."""

from __future__ import annotations

from nova.api.request import Request
from nova.api.view import LEFT_OUT, Out, View, micros, micros_of
from nova.api.views.servers import host_id
from nova.model.server.actions import ActionEvent, InstanceAction
from nova.model.server.states import API_NAMES

EVENTS = "events"  # flag: policy os-instance-actions:events
DETAILS = "details"  # flag: policy os-instance-actions:events:details

ACTION = View(
    Out("action", lambda action, req: API_NAMES.get(action.action, action.action), type="string"),
    Out("instance_uuid", "server_uuid"),
    Out("request_id", "request_id"),
    Out("user_id", "user_id"),
    Out("project_id", "project_id"),
    Out("start_time", micros_of("started_at")),
    Out("message", "message"),
    Out("updated_at", lambda action, req: micros(action.updated_at or action.started_at), since="2.58",
        type=("string", "null")),
    of=InstanceAction,
)

_EVENT = View(
    Out("event", "event"),
    Out("start_time", micros_of("started_at")),
    Out("finish_time", micros_of("finished_at")),
    Out("result", "result"),
    Out("traceback", "traceback", flag=EVENTS),
    Out("host", lambda event, req: event.host or LEFT_OUT, since="2.62", flag=EVENTS, optional=True, type="string"),
    Out("details", "details", since="2.84", flag=DETAILS),
    of=ActionEvent,
)

_WITH_HOST_ID = View(Out("hostId", lambda pair, req: host_id(pair[0].project_id or "", pair[1].host), since="2.62",
                         type="string"))


#: One action with its events.
WHOLE = View(*ACTION.fields, Out("events", "events", type=[View(*_EVENT.fields, *_WITH_HOST_ID.fields, of=ActionEvent)],
                                 optional=True), of=InstanceAction)


def event(action: InstanceAction, event: ActionEvent, req: Request, flags: frozenset[str]) -> dict[str, object]:
    """Return one event; its hostId depends on the action's project, too."""
    return {**_EVENT(event, req, flags), **_WITH_HOST_ID((action, event), req)}
