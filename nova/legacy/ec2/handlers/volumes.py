"""Actions on volumes and their snapshots."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

import msgspec

from nova import errors, failures
from nova.legacy.ec2 import lists
from nova.legacy.ec2.faults import Ec2Error, absent, invalid, missing, unsupported
from nova.legacy.ec2.handlers.instances import target
from nova.legacy.ec2.handlers.run_instances import TagSpecification
from nova.legacy.ec2.parameters import Ec2Arguments, Ec2Listing
from nova.legacy.ec2.request import Ec2Request
from nova.legacy.ec2.views.instances import tags
from nova.legacy.ec2.xml import Tree
from nova.model.base import utcnow
from nova.model.ec2 import SNAPSHOT, VOLUME
from nova.model.volumes import (
    ATTACHED,
    AttachVolume,
    BlockDevice,
    NewVolume,
    NewVolumeSnapshot,
    Volume,
    VolumeQuery,
    VolumeSnapshot,
)

Thing = TypeVar("Thing", Volume, VolumeSnapshot)

ATTACHMENTS = "os_compute_api:os-volumes-attachments"

#: The volume service's status -> EC2's; other statuses are reduced to their first word, such as "error" of
#: "error_deleting".
VOLUME_STATUS = {"attaching": "in-use", "detaching": "in-use", "reserved": "in-use", "downloading": "creating",
                 "uploading": "in-use", "maintenance": "in-use", "retyping": "in-use", "extending": "in-use",
                 "backing-up": "available", "restoring-backup": "creating", "managing": "creating"}
SNAPSHOT_STATUS = {"creating": "pending", "available": "completed", "restoring": "completed", "unmanaging": "completed",
                   "backing-up": "completed", "error_deleting": "error"}
GONE = ("deleted", "deleting")

VOLUME_FILTERS: lists.FilterPaths = {
    "volume-id": "volumeId", "status": "status", "size": "size", "availability-zone": "availabilityZone",
    "snapshot-id": "snapshotId", "create-time": "createTime", "volume-type": "volumeType", "encrypted": "encrypted",
    "attachment.instance-id": "attachmentSet.instanceId", "attachment.device": "attachmentSet.device",
    "attachment.status": "attachmentSet.status", "attachment.attach-time": "attachmentSet.attachTime",
    "attachment.delete-on-termination": "attachmentSet.deleteOnTermination"}
SNAPSHOT_FILTERS: lists.FilterPaths = {
    "snapshot-id": "snapshotId", "volume-id": "volumeId", "status": "status", "owner-id": "ownerId",
    "description": "description", "start-time": "startTime", "volume-size": "volumeSize", "progress": "progress"}


class DescribeVolumes(Ec2Listing, frozen=True, kw_only=True):
    volume_id: tuple[str, ...] = ()


def describe_volumes(req: Ec2Request, args: DescribeVolumes) -> Tree:
    """List volumes.

    Raises InvalidVolume.NotFound, InvalidVolumeID.Malformed, InvalidParameterValue for an unknown filter.
    """
    lists.check_not_both(args.volume_id, args, "VolumeId")
    lists.check_few(args.volume_id, "VolumeId")
    if args.volume_id:
        found = _named(req, "vol", args.volume_id, req.conductor.list_volumes, volume)
    else:
        found = list(req.conductor.list_volumes(VolumeQuery()))
    page = lists.chosen(_volumes(req, found), args, VOLUME_FILTERS, "volumeId", has_tags=True)
    return {"volumeSet": page.items, "nextToken": page.next_token}


def _named(req: Ec2Request, prefix: str, shown: Sequence[str], every: Callable[[VolumeQuery], Sequence[Thing]],
           one: Callable[[Ec2Request, str], Thing]) -> list[Thing]:
    """Return the volumes or snapshots with these EC2 ids, in the same order.

    Several come from the project's list, in one call; a single id, or an id missing from the list, needs its own call.
    """
    wanted = tuple(dict.fromkeys(shown))
    known = {thing.id: thing for thing in every(VolumeQuery())} if len(wanted) > 1 else {}
    return [known.get(id) or one(req, name) for name, id in req.meant(prefix, wanted).items()]


def volume(req: Ec2Request, shown: str) -> Volume:
    """Return the volume with this EC2 id. Raises InvalidVolume.NotFound, InvalidVolumeID.Malformed."""
    with failures.replaced(errors.NotFound, lambda _: absent(VOLUME, shown)):
        found: Volume = req.conductor.get_volume(req.one_meant("vol", shown))
    return found


def _volumes(req: Ec2Request, found: Sequence[Volume]) -> list[Tree]:
    ids = req.ids("vol", [one.id for one in found])
    snapshots = req.ids("snap", [one.snapshot_id or "" for one in found])
    servers = req.ids("i", [use.server_id for one in found for use in one.attachments])
    return [_volume(req, one, ids, snapshots, servers) for one in found]


def _volume(req: Ec2Request, one: Volume, ids: Mapping[str, str], snapshots: Mapping[str, str],
            servers: Mapping[str, str]) -> Tree:
    word = one.status if one.status in VOLUME_STATUS else one.status.split("_")[0]
    shown: dict[str, object] = {
        "volumeId": ids[one.id], "status": VOLUME_STATUS.get(word, word), "size": one.size_gb,
        "availabilityZone": one.availability_zone, "createTime": one.created_at,
        "snapshotId": snapshots.get(one.snapshot_id or "", ""),
        "attachmentSet": [{"attachTime": None, "deleteOnTermination": False, "device": use.device,
                           "instanceId": servers[use.server_id], "status": ATTACHED, "volumeId": ids[one.id]}
                          for use in one.attachments if use.server_id]}
    if req.is_old:
        return shown
    return shown | {"volumeType": one.volume_type or "standard", "encrypted": one.encrypted,
                    "multiAttachEnabled": one.multiattach,
                    "tagSet": tags(one.metadata)}


class CreateVolume(Ec2Arguments, frozen=True, kw_only=True):
    size: int | None = None
    snapshot_id: str | None = None
    availability_zone: str | None = None
    volume_type: str | None = None
    name: str | None = None
    description: str | None = None
    tag_specification: tuple[TagSpecification, ...] = ()
    encrypted: bool = False
    client_token: str | None = None
    iops: int | None = None
    throughput: int | None = None
    multi_attach_enabled: bool = False


def create_volume(req: Ec2Request, args: CreateVolume) -> Tree:
    """Create a volume.

    Raises InvalidSnapshot.NotFound, MissingParameter without size and snapshot, ResourceLimitExceeded.
    """
    for name, is_asked in (("Encrypted", args.encrypted), ("Iops", args.iops), ("Throughput", args.throughput),
                           ("MultiAttachEnabled", args.multi_attach_enabled)):
        if is_asked:
            raise unsupported(f"{name}: the volume type defines this. Specify a VolumeType.")
    if args.size is None and not args.snapshot_id:
        raise missing("Size")
    source = snapshot(req, args.snapshot_id) if args.snapshot_id else None
    size = args.size if args.size is not None else source.size_gb if source else 0
    if size < 1:
        raise invalid("Size", size, "It must be at least 1 (GiB).")
    own = tags_of(args.tag_specification)
    made: Volume = req.conductor.create_volume(NewVolume(
        size_gb=size, name=args.name or own.get("Name", ""), description=args.description,
        snapshot_id=source.id if source else None, availability_zone=args.availability_zone or None,
        volume_type=None if args.volume_type in (None, "", "standard") else args.volume_type, metadata=own))
    return _volumes(req, (made,))[0]


def tags_of(specifications: Sequence[TagSpecification]) -> dict[str, str]:
    """Map tag keys to values. An action creates only one type of resource, so all tags are for that resource."""
    return {tag.key: tag.value for one in specifications for tag in one.tag}


class VolumeOnly(Ec2Arguments, frozen=True, kw_only=True):
    volume_id: str


def delete_volume(req: Ec2Request, args: VolumeOnly) -> Tree:
    """Delete a volume. Raises VolumeInUse (UnsupportedOperation for old clients) if it is in use."""
    found = volume(req, args.volume_id)
    with failures.replaced(errors.Invalid, lambda error: Ec2Error("UnsupportedOperation" if req.is_old else
            "VolumeInUse", error.message)):
        req.conductor.delete_volume(found.id)
    return {"return": True}


# -- attachments


class AttachVolumeTo(Ec2Arguments, frozen=True, kw_only=True):
    volume_id: str
    instance_id: str
    device: str | None = None


def attach_volume(req: Ec2Request, args: AttachVolumeTo) -> Tree:
    """Start to attach a volume; the response does not wait for the attachment.

    Raises InvalidInstanceID.NotFound, InvalidVolume.NotFound, VolumeInUse, IncorrectInstanceState.
    """
    found = volume(req, args.volume_id)
    server = target(req, args.instance_id, f"{ATTACHMENTS}:create")
    _check_lock(req, server.locked, server.uuid)
    made: BlockDevice = req.conductor.attach_volume(server.uuid, AttachVolume(
        volume_id=found.id, device=args.device or None), False)
    return _attachment(req, args.volume_id, args.instance_id, made.device_name or args.device, "attaching",
                       made.delete_on_termination)


def _check_lock(req: Ec2Request, is_locked: bool, uuid: str) -> None:
    if is_locked and not req.context.is_admin:
        raise errors.server.Locked(uuid=uuid)


def _attachment(req: Ec2Request, volume_id: str, instance_id: str, device: str | None, status: str,
                goes_with_it: bool) -> Tree:
    shown: dict[str, object] = {"attachTime": utcnow(), "device": device, "instanceId": instance_id,
                                "status": status, "volumeId": volume_id}
    return shown if req.is_old else shown | {"deleteOnTermination": goes_with_it}




class DetachVolumeFrom(Ec2Arguments, frozen=True, kw_only=True):
    volume_id: str
    instance_id: str | None = None
    device: str | None = None
    force: bool = False


def detach_volume(req: Ec2Request, args: DetachVolumeFrom) -> Tree:
    """Start to detach a volume; the response does not wait for the end.

    Raises IncorrectState if the volume is not attached to the named instance, or to any.
    """
    found = volume(req, args.volume_id)
    named = target(req, args.instance_id, f"{ATTACHMENTS}:delete") if args.instance_id else None
    uses = [use for use in found.attachments if named is None or use.server_id == named.uuid]
    if not uses:
        raise Ec2Error("IncorrectState", f"Volume {args.volume_id} is not attached"
                                         f"{f' to {args.instance_id}' if args.instance_id else ''}.")
    if len(uses) > 1:
        raise Ec2Error("IncorrectState", f"Volume {args.volume_id} is attached to several instances: specify one.")
    instance_id = req.id("i", uses[0].server_id)
    server = named or target(req, instance_id, f"{ATTACHMENTS}:delete")
    _check_lock(req, server.locked, server.uuid)
    req.conductor.detach_volume(server.uuid, found.id)
    return _attachment(req, args.volume_id, instance_id, uses[0].device, "detaching", False)


# -- snapshots


class DescribeSnapshots(Ec2Listing, frozen=True, kw_only=True):
    snapshot_id: tuple[str, ...] = ()
    owner: tuple[str, ...] = ()
    restorable_by: tuple[str, ...] = ()


def describe_snapshots(req: Ec2Request, args: DescribeSnapshots) -> Tree:
    """List snapshots.

    Raises InvalidSnapshot.NotFound, InvalidSnapshotID.Malformed, InvalidParameterValue for an unknown filter.
    """
    lists.check_not_both(args.snapshot_id, args, "SnapshotId")
    lists.check_few(args.snapshot_id, "SnapshotId")
    if args.snapshot_id:
        found = _named(req, "snap", args.snapshot_id, req.conductor.list_volume_snapshots, snapshot)
    else:
        found = [one for one in req.conductor.list_volume_snapshots(VolumeQuery()) if one.status not in GONE]
    page = lists.chosen(_snapshots(req, found), args, SNAPSHOT_FILTERS, "snapshotId", has_tags=True)
    return {"snapshotSet": page.items, "nextToken": page.next_token}


def snapshot(req: Ec2Request, shown: str) -> VolumeSnapshot:
    """Return the snapshot with this EC2 id. Raises InvalidSnapshot.NotFound, InvalidSnapshotID.Malformed."""
    with failures.replaced(errors.NotFound, lambda _: absent(SNAPSHOT, shown)):
        found: VolumeSnapshot = req.conductor.get_volume_snapshot(req.one_meant("snap", shown))
    return found


def _snapshots(req: Ec2Request, found: Sequence[VolumeSnapshot]) -> list[Tree]:
    ids = req.ids("snap", [one.id for one in found])
    volumes = req.ids("vol", [one.volume_id for one in found])
    shown: list[dict[str, object]] = [
        {"snapshotId": ids[one.id], "volumeId": volumes.get(one.volume_id),
         "status": SNAPSHOT_STATUS.get(one.status, one.status), "startTime": one.created_at,
         "progress": one.progress, "ownerId": one.project_id or req.project_id, "volumeSize": one.size_gb,
         "description": one.description or ""} for one in found]
    return [*shown] if req.is_old else [{**tree, "tagSet": tags(one.metadata)}
                                        for tree, one in zip(shown, found, strict=True)]


class CreateSnapshot(Ec2Arguments, frozen=True, kw_only=True):
    volume_id: str
    name: str | None = None
    description: str | None = None
    force: bool | None = None
    tag_specification: tuple[TagSpecification, ...] = ()


def create_snapshot(req: Ec2Request, args: CreateSnapshot) -> Tree:
    """Create a snapshot, also of a volume in use; old clients must set Force for that."""
    found = volume(req, args.volume_id)
    force = not req.is_old if args.force is None else args.force
    own = tags_of(args.tag_specification)
    made: VolumeSnapshot = req.conductor.create_volume_snapshot(NewVolumeSnapshot(
        volume_id=found.id, name=args.name or own.get("Name", ""), description=args.description, force=force,
        metadata=own))
    return _snapshots(req, (msgspec.structs.replace(made, volume_id=made.volume_id or found.id),))[0]


class SnapshotOnly(Ec2Arguments, frozen=True, kw_only=True):
    snapshot_id: str


def delete_snapshot(req: Ec2Request, args: SnapshotOnly) -> Tree:
    """Delete a snapshot. Raises InvalidSnapshot.NotFound, InvalidSnapshot.InUse."""
    found = snapshot(req, args.snapshot_id)
    with failures.replaced(errors.Invalid, lambda error: Ec2Error("InvalidSnapshot.InUse", error.message)):
        req.conductor.delete_volume_snapshot(found.id)
    return {"return": True}
