"""Further parts of a server: password, topology, diagnostics; the reset of its state; external events."""

from __future__ import annotations

import uuid
from collections.abc import Mapping

from nova import errors
from nova.api import versions
from nova.api.handlers.server_targets import target
from nova.api.request import Answer, Request
from nova.api.view import Free, answers
from nova.api.views import server_parts as views
from nova.model.server.diagnostics import Diagnostics
from nova.model.server.server_parts import ExternalEvent, ServerPassword, ServerTopology, StateReset
from nova.model.server.servers import ServerQuery

TOPOLOGY_HOST_RULE = "compute:server:topology:host:index"
ACCEPTED, MIXED = 200, 207


@answers({"password": "string"})
def password(req: Request, server_id: str) -> dict[str, object]:
    """Show the encrypted password that the guest posted; empty if it posted none. Raises server.NotFound (404)."""
    found: ServerPassword = req.conductor.get_server_password(ServerQuery(uuid=server_id, scope=req.scope()))
    req.authorize(found.project_id, found.user_id)
    return {"password": found.password}


def clear_password(req: Request, server_id: str) -> None:
    """Delete the password that the guest posted, so that it can post another. Idempotent. Raises server.NotFound
    (404)."""
    target(req, server_id)
    req.conductor.clear_server_password(server_id)


@answers({"nodes": [views.NODE], "pagesize_kb": ("integer", "null")})
def topology(req: Request, server_id: str) -> dict[str, object]:
    """Show the NUMA nodes of a server; showing its host processors and nodes needs a separate rule. ``pagesize_kb`` is
    in KiB. Raises server.NotFound (404)."""
    found: ServerTopology = req.conductor.get_server_topology(ServerQuery(uuid=server_id, scope=req.scope()))
    req.authorize(found.project_id, found.user_id)
    flags = frozenset({views.HOST} if req.allows(TOPOLOGY_HOST_RULE, found.project_id) else ())
    return {"nodes": views.NODE.all(found.nodes, req, flags), "pagesize_kb": found.page_kb}


@answers((views.DIAGNOSTICS, Free("integer")))
def diagnostics(req: Request, server_id: str) -> Mapping[str, object]:
    """Show the diagnostics of a server. Policy is checked before the host is asked, so it takes two calls."""
    if target(req, server_id).host is None:
        raise errors.server.NoHost(server=server_id)
    diagnostics: Diagnostics = req.conductor.get_diagnostics(server_id)
    return (views.DIAGNOSTICS(diagnostics, req) if versions.diagnostics_have_a_standard_form(req.version)
            else views.old_diagnostics(diagnostics))


def reset_state(req: Request, server_id: str) -> None:
    """Set a server to active or error, regardless of its state; a running action stops at its next step. Raises
    server.NotFound (404); server.HalfDestroyed (409)."""
    target(req, server_id)
    req.conductor.reset_state(StateReset(uuid=server_id, state=req.body["os-resetState"]["state"]))


@answers({"events": ["object"]}, codes=(207,))
def external_events(req: Request) -> Answer:
    """Accept external events of servers. Each event has its own code; a failed event makes the response 207."""
    asked = req.body["events"]
    events = tuple(ExternalEvent(**{**item, "server_uuid": str(uuid.UUID(item["server_uuid"]))}) for item in asked)
    codes = req.conductor.external_events(events)
    shown = [{"status": event.status, **item, "code": code}
             for item, event, code in zip(asked, events, codes, strict=True)]
    return Answer({"events": shown}, ACCEPTED if all(code == ACCEPTED for code in codes) else MIXED)
