"""Actions that stop, start, reboot and terminate instances, and that read their console output and password."""

from __future__ import annotations

import base64
from collections.abc import Sequence

from nova import errors, failures
from nova.legacy.ec2.faults import absent
from nova.legacy.ec2.handlers.instances import InstanceOnly, by_ids, target
from nova.legacy.ec2.parameters import Ec2Arguments
from nova.legacy.ec2.request import Ec2Request
from nova.legacy.ec2.views.instances import (
    PENDING,
    SHUTTING_DOWN,
    STOPPED,
    STOPPING,
    TERMINATED,
    InstanceState,
    state_of,
)
from nova.legacy.ec2.xml import Tree
from nova.model.base import utcnow
from nova.model.ec2 import INSTANCE
from nova.model.server.servers import ConsoleQuery, ServerDetail, ServerOrder, ServerQuery

DELETE, REBOOT = "os_compute_api:servers:delete", "os_compute_api:servers:reboot"
STOP, START = "os_compute_api:servers:stop", "os_compute_api:servers:start"
CONSOLE, PASSWORD = "os_compute_api:os-console-output", "os_compute_api:os-server-password:show"
CONSOLE_BYTES = 65536  # the last bytes of a console log, AWS's limit


class InstanceIds(Ec2Arguments, frozen=True, kw_only=True):
    instance_id: tuple[str, ...]
    force: bool = False  # stop without waiting for the guest; ignored, the compute API decides


def terminate_instances(req: Ec2Request, args: InstanceIds) -> Tree:
    """Delete the instances. All are looked up before any is changed; deleted ones are left alone."""
    servers = _actors(req, args, DELETE)
    changes = []
    for server in servers:
        if not server.deleted:
            _order(req, server, "delete")
        changes.append((server, TERMINATED if server.deleted else SHUTTING_DOWN))
    return _changed(req, changes)


def stop_instances(req: Ec2Request, args: InstanceIds) -> Tree:
    """Stop the instances; those already stopped are left alone."""
    servers = _actors(req, args, STOP)
    changes = []
    for server in servers:
        is_off = state_of(server, is_old=False) is STOPPED
        if not is_off or req.is_old:
            _order(req, server, "stop")
        changes.append((server, STOPPED if is_off and not req.is_old else STOPPING))
    return _changed(req, changes)


def start_instances(req: Ec2Request, args: InstanceIds) -> Tree:
    """Start the stopped instances."""
    servers = _actors(req, args, START)
    for server in servers:
        _order(req, server, "start")
    return _changed(req, [(server, PENDING) for server in servers])


def reboot_instances(req: Ec2Request, args: InstanceIds) -> Tree:
    """Hard-reboot the instances, without the guests' cooperation."""
    for server in _actors(req, args, REBOOT):
        _order(req, server, "hard_reboot")
    return {"return": True}


def _actors(req: Ec2Request, args: InstanceIds, rule: str) -> Sequence[ServerDetail]:
    """Return the servers after checking the policy rule and the lock of each.

    Raises InvalidInstanceID.NotFound or Malformed, UnauthorizedOperation, OperationNotPermitted if one is locked.
    """
    servers = by_ids(req, args.instance_id)
    for server in servers:
        req.authorize(rule, server.project_id, server.user_id)
        if server.locked and not req.context.is_admin:
            raise errors.server.Locked(uuid=server.uuid)
    return servers


def _order(req: Ec2Request, server: ServerDetail, action: str) -> None:
    req.conductor.order_server(ServerOrder(uuid=server.uuid, action=action))


def _changed(req: Ec2Request, changes: Sequence[tuple[ServerDetail, InstanceState]]) -> Tree:
    ids = req.ids("i", [server.uuid for server, _now in changes])
    return {"instancesSet": [{"instanceId": ids[server.uuid], "currentState": now.tree,
                              "previousState": state_of(server, req.is_old).tree} for server, now in changes]}


class OutputOfInstance(InstanceOnly, frozen=True, kw_only=True):
    latest: bool = False  # the current output; every response is current here


def get_console_output(req: Ec2Request, args: OutputOfInstance) -> Tree:
    """Return the end of the console log; empty for a server without a log or a host."""
    found = target(req, args.instance_id, CONSOLE)
    text = ""
    if found.host is not None:
        text = req.conductor.get_console_output(ConsoleQuery(uuid=found.uuid))
    output = base64.b64encode(text.encode("utf-8", "replace")[-CONSOLE_BYTES:]).decode()
    return {"instanceId": args.instance_id, "timestamp": utcnow(), "output": output}


def get_password_data(req: Ec2Request, args: InstanceOnly) -> Tree:
    """Return the password that the guest posted, encrypted with the user's key; empty if it posted none."""
    uuid = req.one_meant("i", args.instance_id)
    with failures.replaced(errors.NotFound, lambda _: absent(INSTANCE, args.instance_id)):
        found = req.conductor.get_server_password(ServerQuery(uuid=uuid, scope=req.scope()))
    req.authorize(PASSWORD, found.project_id, found.user_id)
    return {"instanceId": args.instance_id, "timestamp": utcnow(), "passwordData": found.password}


