"""Actions on a server without arguments, its console output, lock and unlock."""

from __future__ import annotations

import re

from nova.api import versions
from nova.api.handlers.server_targets import actor, check_lock, order, target
from nova.api.request import Request
from nova.api.view import answers
from nova.model.server.server_orders import ChangePassword
from nova.model.server.servers import ConsoleQuery, LockChange, ServerOrder

UNLOCK_OVERRIDE = "os_compute_api:os-lock-server:unlock:unlock_override"
OWNER, ADMIN = "owner", "admin"
FORCE = "force"  # argument of a delete: never a soft delete, regardless of the conductor's settings

_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")


def start(req: Request, server_id: str) -> None:
    """Start a stopped server. Raises server.NotFound (404); server.Locked, server.WrongState, server.NoHost (409)."""
    order(req, server_id, "start")


def stop(req: Request, server_id: str) -> None:
    """Shut a server down; it keeps its disk and host. Raises server.NotFound (404); server.Locked, server.WrongState,
    server.NoHost (409)."""
    order(req, server_id, "stop")


def reboot(req: Request, server_id: str) -> None:
    """Reboot a server: SOFT through its operating system, HARD by a power cycle. Raises server.NotFound (404);
    server.Locked, server.WrongState, server.NoHost (409)."""
    order(req, server_id, f"{req.body['reboot']['type'].lower()}_reboot")


def pause(req: Request, server_id: str) -> None:
    """Stop a server's processors; its memory stays. Raises server.NotFound (404); server.Locked, server.WrongState,
    server.NoHost (409)."""
    order(req, server_id, "pause")


def unpause(req: Request, server_id: str) -> None:
    """Unpause a paused server. Raises server.NotFound (404); server.Locked, server.WrongState, server.NoHost (409)."""
    order(req, server_id, "unpause")


def suspend(req: Request, server_id: str) -> None:
    """Write a server's memory to its host's disk and stop it. Raises server.NotFound (404); server.Locked,
    server.WrongState, server.NoHost (409)."""
    order(req, server_id, "suspend")


def resume(req: Request, server_id: str) -> None:
    """Resume a suspended server from its saved memory. Raises server.NotFound (404); server.Locked, server.WrongState,
    server.NoHost (409)."""
    order(req, server_id, "resume")


def trigger_crash_dump(req: Request, server_id: str) -> None:
    """Send a server an interrupt that triggers a kernel crash dump, if its kernel is set up for it. Raises
    server.NotFound (404); server.Locked, server.WrongState, server.NoHost (409)."""
    order(req, server_id, "trigger_crash_dump")


def restore(req: Request, server_id: str) -> None:
    """Restore a soft-deleted server."""
    order(req, server_id, "restore")


def force_delete(req: Request, server_id: str) -> None:
    """Delete a server immediately, even if deleted servers are kept for a while."""
    check_lock(req, target(req, server_id))
    req.conductor.order_server(ServerOrder(uuid=server_id, action="delete", arguments={FORCE: "true"}))


def change_password(req: Request, server_id: str) -> None:
    """Set the administrator's password in the guest; responds when it has started. Raises server.NotFound (404);
    server.Locked, server.WrongState, server.NoHost (409)."""
    actor(req, server_id, "changePassword")
    req.conductor.change_password(ChangePassword(uuid=server_id, password=req.body["changePassword"]["adminPass"]))


def inject_network_info(req: Request, server_id: str) -> None:
    """Accept the request without effect: guests read their network data from the metadata service or the config drive,
    and drivers do not write it into their file systems."""
    check_lock(req, target(req, server_id))


@answers({"output": "string"})
def console_output(req: Request, server_id: str) -> dict[str, object]:
    """Return the last ``length`` lines of the console log (-1, null or omitted: all), without control characters."""
    target(req, server_id)
    length = req.body["os-getConsoleOutput"].get("length")
    text = req.conductor.get_console_output(ConsoleQuery(uuid=server_id, length=None if length == -1 else length))
    return {"output": _CONTROL.sub("", text)}


def _role(req: Request, project_id: str) -> str:
    return OWNER if req.context.project_id == project_id else ADMIN


def lock(req: Request, server_id: str) -> None:
    """Lock a server. A second lock is accepted: an owner's changes nothing, an administrator's replaces the owner's."""
    found = target(req, server_id)
    role = _role(req, found.project_id)
    if found.locked and role == OWNER:
        return
    asked = req.body["lock"] if versions.lock_has_reason(req.version) else None
    reason = asked.get("locked_reason") if asked else None
    unless = (OWNER, ADMIN) if role == OWNER else ()
    req.conductor.lock_server(LockChange(uuid=server_id, by=role, reason=reason, unless=unless))


def unlock(req: Request, server_id: str) -> None:
    """Unlock a server. Policy decides which users may remove another user's lock."""
    found = target(req, server_id)
    role = _role(req, found.project_id)
    if found.locked_by is None or found.locked_by == role:
        unless: tuple[str, ...] = (ADMIN if role == OWNER else OWNER,)
    else:
        req.authorize(found.project_id, found.user_id, rule=UNLOCK_OVERRIDE)
        unless = ()
    req.conductor.lock_server(LockChange(uuid=server_id, by=None, unless=unless))
