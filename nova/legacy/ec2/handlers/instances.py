"""Actions that describe instances, and that describe or modify their attributes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TypeVar

import msgspec

from nova import errors, failures
from nova.legacy.ec2 import lists
from nova.legacy.ec2.faults import Ec2Error, absent, invalid, unsupported
from nova.legacy.ec2.parameters import Ec2Arguments, Ec2Listing
from nova.legacy.ec2.request import Ec2Request
from nova.legacy.ec2.views import instances as views
from nova.legacy.ec2.xml import Tree
from nova.model.base import Page
from nova.model.ec2 import INSTANCE
from nova.model.network.security_groups import GroupMembership
from nova.model.server.servers import Condition, ServerDetail, ServerListQuery, ServerPage, ServerQuery, ServerTarget
from nova.model.server.states import VmState

Found = TypeVar("Found", ServerTarget, ServerDetail)

PAGE = 1000  # servers of one call
DELETED_TOO = "any"
GONE = (VmState.DELETED, VmState.SOFT_DELETED)
#: A stable order: the newest first.
ORDER = (("created_at", "desc"),)

FILTERS: lists.FilterPaths = {
    "instance-id": "instanceId", "instance-state-name": "instanceState.name",
    "instance-state-code": "instanceState.code", "instance-type": "instanceType", "image-id": "imageId",
    "key-name": "keyName", "availability-zone": "placement.availabilityZone",
    "private-ip-address": "privateIpAddress", "ip-address": "ipAddress", "private-dns-name": "privateDnsName",
    "dns-name": "dnsName", "launch-time": "launchTime", "client-token": "clientToken",
    "root-device-name": "rootDeviceName", "root-device-type": "rootDeviceType", "launch-index": "amiLaunchIndex",
    "kernel-id": "kernelId", "ramdisk-id": "ramdiskId", "architecture": "architecture",
    "instance.group-name": "groupSet.groupName", "instance.group-id": "groupSet.groupId",
    "block-device-mapping.volume-id": "blockDeviceMapping.ebs.volumeId",
    "block-device-mapping.device-name": "blockDeviceMapping.deviceName",
    "reservation-id": "reservation.reservationId", "owner-id": "reservation.ownerId",
    "group-name": "reservation.groupSet.groupName", "group-id": "reservation.groupSet.groupId"}


class DescribeInstances(Ec2Listing, frozen=True, kw_only=True):
    instance_id: tuple[str, ...] = ()


def describe_instances(req: Ec2Request, args: DescribeInstances) -> Tree:
    """List instances, grouped by reservation.

    Raises InvalidInstanceID.NotFound or Malformed, InvalidParameterValue for an unknown filter, InvalidNextToken.
    """
    return _described(req, args)


def describe_instances_v6(req: Ec2Request, args: DescribeInstances) -> Tree:
    """List instances as ``describe_instances`` does, with IPv6 addresses."""
    return _described(req, args, with_v6=True)


def _described(req: Ec2Request, args: DescribeInstances, with_v6: bool = False) -> Tree:
    lists.check_not_both(args.instance_id, args, "InstanceId")
    tests = lists.tester(args.filter, FILTERS, has_tags=True)
    most, last = lists.page_size(args), None
    shown: dict[str, dict[str, object]] = {}
    count, following = 0, None
    for servers in _batches(req, args):
        names = views.names_of(req, servers)
        for server in servers:
            whole = views.reservation(req, server.reservation_id, (server,), names, with_v6)
            members = whole["instancesSet"]
            assert isinstance(members, list)
            if args.filter and not tests({**members[0], "reservation": whole}):
                continue
            if count == most:  # at least one more instance matches
                following = last
                break
            count, last = count + 1, server.uuid
            kept = shown.setdefault(server.reservation_id, whole)
            if kept is not whole:
                together = kept["instancesSet"]
                assert isinstance(together, list)
                together.extend(members)
        if following:
            break
    found: dict[str, object] = {"reservationSet": list(shown.values())}
    return found | ({"nextToken": lists.token(following)} if following else {})


def _batches(req: Ec2Request, args: DescribeInstances) -> Iterator[Sequence[ServerDetail]]:
    """Yield batches of all requested servers, one batch per RPC call."""
    if args.instance_id:
        yield by_ids(req, args.instance_id)
        return
    marker = lists.token_text(args.next_token) if args.next_token else None
    size = min(PAGE, (lists.page_size(args) or PAGE) + 1) if not args.filter else PAGE
    while True:
        found: ServerPage = req.conductor.list_servers(ServerListQuery(
            scope=req.scope(), sort=ORDER, page=Page(limit=size, marker=marker)))
        yield found.servers
        if len(found.servers) < size:
            return
        marker = found.servers[-1].uuid


def every(req: Ec2Request, args: DescribeInstances) -> list[ServerDetail]:
    """Return all requested servers in one list."""
    return [one for batch in _batches(req, args) for one in batch]


def by_ids(req: Ec2Request, shown: Sequence[str]) -> Sequence[ServerDetail]:
    """Return the servers with these EC2 ids, in the same order.

    Deleted servers whose rows still exist are included, except for old clients: today's clients wait for an instance to
    be terminated. Raises InvalidInstanceID.NotFound or Malformed.
    """
    meant = req.meant("i", shown)
    found = of_uuids(req, list(meant.values()), with_deleted=not req.is_old)
    for one, uuid in meant.items():
        if uuid not in found or (req.is_old and found[uuid].vm_state in GONE):
            raise absent(INSTANCE, one)
    return [found[uuid] for uuid in dict.fromkeys(meant.values())]


def of_uuids(req: Ec2Request, uuids: Sequence[str], with_deleted: bool = False) -> Mapping[str, ServerDetail]:
    """Map UUIDs to servers, for the servers that exist."""
    found: dict[str, ServerDetail] = {}
    for first in range(0, len(uuids), PAGE):
        wanted = tuple(uuids[first:first + PAGE])
        page: ServerPage = req.conductor.list_servers(ServerListQuery(
            scope=req.scope(), conditions=(Condition(column="uuid", op="in", values=wanted),), page=Page(limit=PAGE),
            deleted=DELETED_TOO if with_deleted else "live", soft_deleted=with_deleted, sort=ORDER))
        found |= {server.uuid: server for server in page.servers}
    return found


class InstanceOnly(Ec2Arguments, frozen=True, kw_only=True):
    instance_id: str


def target(req: Ec2Request, shown: str, rule: str) -> ServerTarget:
    """Return the server after checking the policy rule against it.

    Raises InvalidInstanceID.NotFound or Malformed, UnauthorizedOperation.
    """
    return _asked_for(req, shown, rule, req.conductor.get_target)


def server(req: Ec2Request, shown: str, rule: str) -> ServerDetail:
    """Return the server with all details, checked as ``target`` does."""
    return _asked_for(req, shown, rule, req.conductor.get_server)


def _asked_for(req: Ec2Request, shown: str, rule: str, get: Callable[[ServerQuery], Found]) -> Found:
    uuid = req.one_meant("i", shown)
    with failures.replaced(errors.NotFound, lambda _: absent(INSTANCE, shown)):
        found = get(ServerQuery(uuid=uuid, scope=req.scope()))
    req.authorize(rule, found.project_id, found.user_id)
    return found


# -- status


class DescribeInstanceStatus(Ec2Listing, frozen=True, kw_only=True):
    instance_id: tuple[str, ...] = ()
    include_all_instances: bool = False


STATUS_FILTERS: lists.FilterPaths = {
    "instance-state-name": "instanceState.name", "instance-state-code": "instanceState.code",
    "availability-zone": "availabilityZone", "instance-status.status": "instanceStatus.status",
    "system-status.status": "systemStatus.status"}


def describe_instance_status(req: Ec2Request, args: DescribeInstanceStatus) -> Tree:
    """List the status of the running instances, or of all with IncludeAllInstances."""
    lists.check_not_both(args.instance_id, args, "InstanceId")
    asked = DescribeInstances(instance_id=args.instance_id)
    servers = every(req, asked)
    ids = req.ids("i", [one.uuid for one in servers])
    items = [_status(ids[one.uuid], one) for one in servers
             if args.include_all_instances or views.state_of(one, is_old=False) is views.RUNNING]
    found = lists.chosen(items, args, STATUS_FILTERS, "instanceId")
    return {"instanceStatusSet": found.items, "nextToken": found.next_token}


def _status(id: str, server: ServerDetail) -> dict[str, object]:
    state = views.state_of(server, is_old=False)
    health = "ok" if state is views.RUNNING else "not-applicable"
    checks = {"status": health, "details": [{"name": "reachability", "status": "passed"}] if health == "ok" else ()}
    return {"instanceId": id, "availabilityZone": server.availability_zone, "instanceState": state.tree,
            "systemStatus": checks, "instanceStatus": checks}


# -- attributes


class DescribeInstanceAttribute(Ec2Arguments, frozen=True, kw_only=True):
    instance_id: str
    attribute: str


def describe_instance_attribute(req: Ec2Request, args: DescribeInstanceAttribute) -> Tree:
    """Return one attribute of an instance.

    Raises InvalidParameterValue (InvalidAttribute for old clients) for an unknown attribute.
    """
    if args.attribute not in ATTRIBUTES:
        raise bad_attribute(req, args.attribute)
    found = server(req, args.instance_id, "os_compute_api:servers:show")
    return {"instanceId": args.instance_id, args.attribute: _attribute(req, found, args.attribute)}


def bad_attribute(req: Ec2Request, name: str) -> Ec2Error:
    """Return the error for an unknown attribute."""
    if req.is_old:
        return Ec2Error("InvalidAttribute", f"Attribute not supported: {name}")
    return invalid("attribute", name, "This cloud does not support the attribute.")


def _attribute(req: Ec2Request, found: ServerDetail, name: str) -> object:
    together = views.reservation(req, found.reservation_id, (found,), views.names_of(req, (found,)))
    members = together["instancesSet"]
    assert isinstance(members, list)
    value = ATTRIBUTES[name](found, {"groupSet": together["groupSet"], **members[0]})
    return value if req.is_old or value is None or isinstance(value, list) else {"value": value}


#: Attribute -> function of the server and its DescribeInstances view that returns the value. Lists get no "value".
ATTRIBUTES: Mapping[str, Callable[[ServerDetail, Tree], object]] = {
    "blockDeviceMapping": lambda found, whole: whole["blockDeviceMapping"],
    "groupSet": lambda found, whole: whole["groupSet"],
    "disableApiTermination": lambda found, whole: found.locked,
    "instanceInitiatedShutdownBehavior": lambda found, whole: found.shutdown_behavior,
    "instanceType": lambda found, whole: whole["instanceType"], "kernel": lambda found, whole: whole["kernelId"],
    "ramdisk": lambda found, whole: whole["ramdiskId"], "rootDeviceName": lambda found, whole: whole["rootDeviceName"],
    "userData": lambda found, whole: found.user_data}


class AttributeValue(msgspec.Struct, frozen=True, kw_only=True):
    value: str = ""


class ModifyInstanceAttribute(Ec2Arguments, frozen=True, kw_only=True):
    """The arguments of ModifyInstanceAttribute. Only groups are supported; the rest is parsed for a helpful error."""

    instance_id: str
    group_id: tuple[str, ...] = ()
    attribute: str | None = None
    value: str | None = None
    disable_api_stop: AttributeValue | None = None
    disable_api_termination: AttributeValue | None = None
    ebs_optimized: AttributeValue | None = None
    ena_support: AttributeValue | None = None
    instance_initiated_shutdown_behavior: AttributeValue | None = None
    instance_type: AttributeValue | None = None
    kernel: AttributeValue | None = None
    ramdisk: AttributeValue | None = None
    source_dest_check: AttributeValue | None = None
    sriov_net_support: AttributeValue | None = None
    user_data: AttributeValue | None = None


def modify_instance_attribute(req: Ec2Request, args: ModifyInstanceAttribute) -> Tree:
    """Change the security groups of an instance. Raises UnsupportedOperation for any other attribute."""
    if not args.group_id:
        raise unsupported("Only the security groups of an instance can be modified (GroupId.N). Use the compute API: "
                          "resize for the type, rebuild for user data, lock for protection from termination.")
    found = server(req, args.instance_id, "os_compute_api:os-security-groups:add")
    wanted = set(views.groups_of(req, args.group_id))
    groups = req.conductor.list_server_security_groups(ServerQuery(uuid=found.uuid, scope=req.scope()))
    now = {one.id for one in groups}
    for id in sorted(wanted - now):
        req.conductor.change_group_membership(GroupMembership(server_uuid=found.uuid, group=id))
    for id in sorted(now - wanted):
        req.conductor.change_group_membership(GroupMembership(server_uuid=found.uuid, group=id, member=False))
    return {"return": True}
