"""Instances, stopped and started, rebooted and terminated; and what their guests say."""

from __future__ import annotations

import base64
from collections.abc import Sequence

from nova import errors
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
CONSOLE_BYTES = 65536  # of a console's log: its end, as much as AWS keeps


class InstanceIds(Ec2Arguments, frozen=True, kw_only=True):
    instance_id: tuple[str, ...]
    force: bool = False  # a stop that does not wait for the guest: the compute API decides that itself


def terminate_instances(req: Ec2Request, args: InstanceIds) -> Tree:
    """All are looked up before any is touched. One that is gone already stays so."""
    servers = _actors(req, args, DELETE)
    changes = []
    for server in servers:
        if not server.deleted:
            _order(req, server, "delete")
        changes.append((server, TERMINATED if server.deleted else SHUTTING_DOWN))
    return _changed(req, changes)


def stop_instances(req: Ec2Request, args: InstanceIds) -> Tree:
    """One that is off stays so."""
    servers = _actors(req, args, STOP)
    changes = []
    for server in servers:
        is_off = state_of(server, is_old=False) is STOPPED
        if not is_off or req.is_old:
            _order(req, server, "stop")
        changes.append((server, STOPPED if is_off and not req.is_old else STOPPING))
    return _changed(req, changes)


def start_instances(req: Ec2Request, args: InstanceIds) -> Tree:
    """Those that are off."""
    servers = _actors(req, args, START)
    for server in servers:
        _order(req, server, "start")
    return _changed(req, [(server, PENDING) for server in servers])


def reboot_instances(req: Ec2Request, args: InstanceIds) -> Tree:
    """Without asking the guest."""
    for server in _actors(req, args, REBOOT):
        _order(req, server, "hard_reboot")
    return {"return": True}


def _actors(req: Ec2Request, args: InstanceIds, rule: str) -> Sequence[ServerDetail]:
    """InvalidInstanceID.NotFound, Malformed; UnauthorizedOperation; OperationNotPermitted: somebody locked it."""
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
    latest: bool = False  # what the console has now; here every answer is so


def get_console_output(req: Ec2Request, args: OutputOfInstance) -> Tree:
    """The end of the console's log. A server that has none, or is on no host, has said nothing."""
    found = target(req, args.instance_id, CONSOLE)
    text = ""
    if found.host is not None:
        text = req.conductor.get_console_output(ConsoleQuery(uuid=found.uuid))
    output = base64.b64encode(text.encode("utf-8", "replace")[-CONSOLE_BYTES:]).decode()
    return {"instanceId": args.instance_id, "timestamp": utcnow(), "output": output}


def get_password_data(req: Ec2Request, args: InstanceOnly) -> Tree:
    """What the guest posted, encrypted with its user's key: empty when it posted nothing."""
    uuid = req.one_meant("i", args.instance_id)
    try:
        found = req.conductor.get_server_password(ServerQuery(uuid=uuid, scope=req.scope()))
    except errors.NotFound:
        raise absent(INSTANCE, args.instance_id) from None
    req.authorize(PASSWORD, found.project_id, found.user_id)
    return {"instanceId": args.instance_id, "timestamp": utcnow(), "passwordData": found.password}


