"""Actions on a server: start, stop, reboot, console output, lock and unlock."""

from __future__ import annotations

import re
from typing import Any

from nova.api import versions
from nova.api.handlers.server_targets import check_lock, check_state, target
from nova.api.request import Request
from nova.api.view import answers
from nova.model.servers import ConsoleQuery, LockChange, ServerOrder

UNLOCK_OVERRIDE = "os_compute_api:os-lock-server:unlock:unlock_override"
OWNER, ADMIN = "owner", "admin"

_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")


def _order(req: Request, server_id: str, action: str) -> None:
    found = target(req, server_id)
    check_lock(req, found)
    check_state(found, action)
    req.conductor.order_server(ServerOrder(uuid=server_id, action=action))


def start(req: Request, server_id: str) -> None:
    _order(req, server_id, "start")


def stop(req: Request, server_id: str) -> None:
    _order(req, server_id, "stop")


def reboot(req: Request, server_id: str) -> None:
    _order(req, server_id, f"{req.body['reboot']['type'].lower()}_reboot")


@answers({"output": "string"})
def console_output(req: Request, server_id: str) -> dict[str, Any]:
    """The last ``length`` lines (-1, null or nothing: all), without control characters."""
    target(req, server_id)
    length = req.body["os-getConsoleOutput"].get("length")
    text = req.conductor.get_console_output(ConsoleQuery(uuid=server_id, length=None if length == -1 else length))
    return {"output": _CONTROL.sub("", text)}


def _role(req: Request, project_id: str) -> str:
    return OWNER if req.context.project_id == project_id else ADMIN


def lock(req: Request, server_id: str) -> None:
    """Locking twice is fine: an owner's second lock changes nothing, an administrator's outranks the owner's."""
    found = target(req, server_id)
    role = _role(req, found.project_id)
    if found.locked and role == OWNER:
        return
    asked = req.body["lock"] if versions.lock_has_reason(req.version) else None
    reason = asked.get("locked_reason") if asked else None
    unless = (OWNER, ADMIN) if role == OWNER else ()
    req.conductor.lock_server(LockChange(uuid=server_id, by=role, reason=reason, unless=unless))


def unlock(req: Request, server_id: str) -> None:
    """Somebody else's lock is only undone by those whom policy lets."""
    found = target(req, server_id)
    role = _role(req, found.project_id)
    if found.locked_by is None or found.locked_by == role:
        unless: tuple[str, ...] = (ADMIN if role == OWNER else OWNER,)
    else:
        req.authorize(found.project_id, found.user_id, rule=UNLOCK_OVERRIDE)
        unless = ()
    req.conductor.lock_server(LockChange(uuid=server_id, by=None, unless=unless))
