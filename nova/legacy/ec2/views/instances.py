"""Views of instances, for DescribeInstances and RunInstances."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from nova.legacy.ec2.faults import absent
from nova.legacy.ec2.request import Ec2Request
from nova.legacy.ec2.xml import Tree
from nova.model.base import Scope
from nova.model.ec2 import MACHINE
from nova.model.network.security_groups import SecurityGroup, SecurityGroupQuery
from nova.model.server.servers import AttachedVolume, ServerDetail
from nova.model.server.states import TaskState, VmState

ROOT_DEVICE = "/dev/sda1"  # the default of EC2 clients
EBS, INSTANCE_STORE = "ebs", "instance-store"


class InstanceState(NamedTuple):
    code: int
    name: str

    @property
    def tree(self) -> Tree:
        """The state as an element tree."""
        return {"code": self.code, "name": self.name}


PENDING, RUNNING, SHUTTING_DOWN = InstanceState(0, "pending"), InstanceState(16, "running"), \
    InstanceState(32, "shutting-down")
TERMINATED, STOPPING, STOPPED = InstanceState(48, "terminated"), InstanceState(64, "stopping"), \
    InstanceState(80, "stopped")

#: vm_state -> (today's state, the state of old API versions); a single element is for both
STATES: Mapping[VmState, tuple[InstanceState, ...]] = {
    VmState.BUILDING: (PENDING,), VmState.ACTIVE: (RUNNING,), VmState.STOPPED: (STOPPED,),
    VmState.DELETED: (TERMINATED,), VmState.SOFT_DELETED: (TERMINATED,),
    VmState.PAUSED: (STOPPED, InstanceState(80, "pause")), VmState.SUSPENDED: (STOPPED, InstanceState(80, "suspend")),
    VmState.RESCUED: (RUNNING, InstanceState(16, "rescue")), VmState.RESIZED: (RUNNING, InstanceState(16, "resize")),
    VmState.SHELVED: (STOPPED,), VmState.SHELVED_OFFLOADED: (STOPPED,),
    VmState.ERROR: (STOPPED, InstanceState(0, "error"))}
#: task_state -> state; not for old API versions.
TASKS: Mapping[TaskState, InstanceState] = {
    TaskState.POWERING_OFF: STOPPING, TaskState.POWERING_ON: PENDING, TaskState.DELETING: SHUTTING_DOWN,
    TaskState.SOFT_DELETING: SHUTTING_DOWN}


def state_of(server: ServerDetail, is_old: bool) -> InstanceState:
    """Return the EC2 state of a server. A failed server that never ran is terminated, except for old clients: it will
    never run, and scripts stop waiting for it."""
    if not is_old:
        if server.task_state is not None and server.task_state in TASKS:
            return TASKS[server.task_state]
        if server.vm_state is VmState.ERROR and server.launched_at is None:
            return TERMINATED
    states = STATES.get(server.vm_state, (PENDING,))
    return states[-1] if is_old else states[0]


@dataclass(frozen=True)
class Names:
    """The EC2 ids of all resources that some instances refer to. ``groups``: security group name -> id."""

    instances: Mapping[str, str]
    images: Mapping[str, str]
    kernels: Mapping[str, str]
    ramdisks: Mapping[str, str]
    volumes: Mapping[str, str]
    groups: Mapping[str, str]


def names_of(req: Ec2Request, servers: Sequence[ServerDetail]) -> Names:
    """Look up the EC2 ids for all servers together."""
    return Names(
        req.ids("i", [one.uuid for one in servers]), req.ids(MACHINE, [one.image_id for one in servers]),
        req.ids("aki", [one.kernel_id for one in servers]), req.ids("ari", [one.ramdisk_id for one in servers]),
        req.ids("vol", [volume.id for one in servers for volume in one.volumes]),
        {} if req.is_old else group_ids(req))


def group_ids(req: Ec2Request) -> Mapping[str, str]:
    """Map the names of the project's security groups to their EC2 ids."""
    groups = _groups_of_project(req)
    ids = req.ids("sg", [one.id for one in groups])
    return {one.name: ids[one.id] for one in groups}


def groups_of(req: Ec2Request, wanted: Iterable[str]) -> list[str]:
    """Return the compute API's ids of the project's security groups with these EC2 ids; names may be ambiguous.

    Raises InvalidGroup.NotFound.
    """
    ids = req.ids("sg", [one.id for one in _groups_of_project(req)])
    known = {shown: id for id, shown in ids.items()}
    for shown in wanted:
        if shown not in known:
            raise absent("security-group", shown)
    return [known[shown] for shown in wanted]


def _groups_of_project(req: Ec2Request) -> Sequence[SecurityGroup]:
    found: Sequence[SecurityGroup] = req.conductor.list_security_groups(
        SecurityGroupQuery(scope=Scope(project_id=req.project_id)))
    return found


def reservations(req: Ec2Request, servers: Sequence[ServerDetail], with_v6: bool = False) -> list[Tree]:
    """Group the servers by the requests that created them, in the order of the servers."""
    names = names_of(req, servers)
    found: dict[str, list[ServerDetail]] = {}
    for server in servers:
        found.setdefault(server.reservation_id, []).append(server)
    return [reservation(req, id, members, names, with_v6) for id, members in found.items()]


def reservation(req: Ec2Request, id: str, members: Sequence[ServerDetail], names: Names, with_v6: bool = False
                ) -> dict[str, object]:
    """Return the view of the servers of one request."""
    first = members[0]
    return {"reservationId": id, "ownerId": first.project_id, "groupSet": _groups(req, first, names),
            "instancesSet": [instance(req, one, names, with_v6) for one in members]}


def _groups(req: Ec2Request, server: ServerDetail, names: Names) -> list[Tree]:
    """Return the view of a server's security groups. Old API versions have a group's name in place of its id."""
    if req.is_old:
        return [{"groupId": name} for name in server.security_groups]
    return [{"groupId": names.groups.get(name), "groupName": name} for name in server.security_groups]


def instance(req: Ec2Request, server: ServerDetail, names: Names, with_v6: bool = False) -> dict[str, object]:
    """Return the view of one instance. ``with_v6``: in the shape of DescribeInstancesV6."""
    state, place = state_of(server, req.is_old), _addresses(server)
    private_name = place.fixed if req.options.private_dns_show_ip else server.hostname
    shown: dict[str, object] = {
        "instanceId": names.instances[server.uuid], "imageId": names.images.get(server.image_id),
        "kernelId": names.kernels.get(server.kernel_id), "ramdiskId": names.ramdisks.get(server.ramdisk_id),
        "instanceState": state.tree, "privateDnsName": private_name, "dnsName": place.floating}
    if with_v6:
        shown["dnsNameV6"] = place.fixed_v6
    shown |= {
        "privateIpAddress": place.fixed, "ipAddress": place.floating, "keyName": _key_name(req, server),
        "tagSet": tags(server.metadata), "clientToken": server.client_token,
        "productCodesSet" if req.is_old else "productCodes": (),
        "instanceType": server.flavor.name, "launchTime": server.created_at, "amiLaunchIndex": server.launch_index,
        "rootDeviceName": server.root_device_name or ROOT_DEVICE, "rootDeviceType": root_type(server),
        "blockDeviceMapping": [_device(volume, names) for volume in server.volumes],
        "placement": {"availabilityZone": server.availability_zone}}
    return shown if req.is_old else shown | _today(req, server, state, names)


def _today(req: Ec2Request, server: ServerDetail, state: InstanceState, names: Names) -> dict[str, object]:
    reason = None
    if server.vm_state is VmState.ERROR and server.fault is not None:
        reason = {"code": "Server.InternalError", "message": server.fault.message}
    elif state is TERMINATED:
        reason = {"code": "Client.UserInitiatedShutdown", "message": "Client.UserInitiatedShutdown: deleted"}
    return {"groupSet": _groups(req, server, names), "stateReason": reason,
            "reason": reason["message"] if reason else "", "architecture": architecture(server.image_properties),
            "virtualizationType": "hvm", "monitoring": {"state": "disabled"}}


def architecture(properties: Mapping[str, str]) -> str:
    """Return EC2's name of the architecture in an image's properties."""
    named = properties.get("hw_architecture") or properties.get("architecture") or "x86_64"
    return {"i686": "i386", "aarch64": "arm64"}.get(named, named)


def root_type(server: ServerDetail) -> str:
    """Return the storage type of the server's root disk."""
    return EBS if any(volume.is_root for volume in server.volumes) else INSTANCE_STORE


def _key_name(req: Ec2Request, server: ServerDetail) -> str | None:
    if req.decorates:
        return f"{server.key_name} ({server.project_id}, {server.host})"
    return server.key_name


def tags(metadata: Mapping[str, str]) -> list[Tree]:
    """Return the tags for a resource's metadata, sorted by key."""
    return [{"key": key, "value": value} for key, value in sorted(metadata.items())]


def _device(volume: AttachedVolume, names: Names) -> Tree:
    return {"deviceName": volume.device, "ebs": {
        "volumeId": names.volumes[volume.id], "deleteOnTermination": volume.delete_on_termination, "attachTime": None,
        "status": "attached"}}


class InstanceAddresses(NamedTuple):
    """The first address of each kind; None: there is none."""

    fixed: str | None
    floating: str | None
    fixed_v6: str | None


def _addresses(server: ServerDetail) -> InstanceAddresses:
    fixed = [one for card in server.interfaces for one in card.addresses]
    return InstanceAddresses(_first(one.address for one in fixed if one.version == 4),
                     _first(one.address for card in server.interfaces for one in card.floating_addresses),
                     _first(one.address for one in fixed if one.version == 6))


def _first(found: Iterable[str]) -> str | None:
    return next(iter(found), None)
