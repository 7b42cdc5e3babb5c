"""Checks at the start of every action on a server: look-up, policy, lock, state, in this order."""

from __future__ import annotations

from nova import errors
from nova.api.request import Request
from nova.model.server import states
from nova.model.server.servers import ServerOrder, ServerQuery, ServerTarget


def target(req: Request, server_id: str, rule: str | None = None) -> ServerTarget:
    """Return the server after a policy check of the operation's rule, or of ``rule`` instead. Raises NotFound before
    Forbidden."""
    found: ServerTarget = req.conductor.get_target(ServerQuery(uuid=server_id, scope=req.scope()))
    req.authorize(found.project_id, found.user_id, rule)
    return found


def actor(req: Request, server_id: str, name: str, rule: str | None = None) -> ServerTarget:
    """Return the server of an action after the checks of look-up, policy, lock (if it applies) and state."""
    found = target(req, server_id, rule)
    if states.ACTIONS[name].refused_when_locked:
        check_lock(req, found)
    check_state(found, name)
    return found


def order(req: Request, server_id: str, name: str) -> None:
    """Order the action ``name``, which has no arguments."""
    actor(req, server_id, name)
    req.conductor.order_server(ServerOrder(uuid=server_id, action=name))


def check_lock(req: Request, found: ServerTarget) -> None:
    """Raise server.Locked for a locked server, except for administrators."""
    if found.locked and not req.context.is_admin:
        raise errors.server.Locked(uuid=found.uuid)


def check_state(found: ServerTarget, name: str) -> None:
    """Raise WrongState or server.NoHost by the row ``name`` of the state table; the conductor repeats the check
    atomically."""
    action = states.ACTIONS[name]
    reason = states.refusal(action, found.vm_state, found.task_state, found.launched)
    if reason is not None:
        shown = states.API_NAMES.get(name, name)
        raise errors.server.WrongState(action=shown, server=found.uuid, attribute=reason.attribute, value=reason.value)
    if action.needs_host and found.host is None:
        raise errors.server.NoHost(server=found.uuid)
