"""Actions on tags, the metadata of instances, volumes and snapshots. For old clients only instances have tags."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

import msgspec

from nova import errors, failures
from nova.legacy.ec2 import lists
from nova.legacy.ec2.faults import Ec2Error, invalid
from nova.legacy.ec2.handlers import volumes
from nova.legacy.ec2.handlers.instances import DescribeInstances, every, server
from nova.legacy.ec2.handlers.run_instances import Tag
from nova.legacy.ec2.parameters import Ec2Arguments, Ec2Listing
from nova.legacy.ec2.request import Ec2Request
from nova.legacy.ec2.xml import Tree
from nova.model import volumes as model
from nova.model.ec2 import INSTANCE, SNAPSHOT, VOLUME
from nova.model.server.servers import MetadataChange
from nova.model.volumes import VolumeMetadataChange, VolumeQuery

CREATE, DELETE = "create", "delete"

FILTERS: lists.FilterPaths = {"key": "key", "value": "value", "resource-id": "resourceId",
                              "resource-type": "resourceType"}


class Tagged(NamedTuple):
    """A resource's tags, and the function that changes them: takes the values to write and the keys to delete."""

    tags: Mapping[str, str]
    change: Callable[[Mapping[str, str], tuple[str, ...]], object]


def _instance(req: Ec2Request, shown: str, doing: str) -> Tagged:
    found = server(req, shown, f"os_compute_api:server-metadata:{doing}")
    if found.locked and not req.context.is_admin:
        raise errors.server.Locked(uuid=found.uuid)
    return Tagged(found.metadata, lambda items, gone: req.conductor.change_metadata(
        MetadataChange(uuid=found.uuid, items=items, delete=gone)))


def _volume(req: Ec2Request, shown: str, doing: str) -> Tagged:
    req.authorize(f"os_compute_api:os-volumes:{doing}")
    found = volumes.volume(req, shown)
    return Tagged(found.metadata, lambda items, gone: req.conductor.change_volume_metadata(
        VolumeMetadataChange(kind=model.VOLUME, id=found.id, items=items, delete=gone)))


def _snapshot(req: Ec2Request, shown: str, doing: str) -> Tagged:
    req.authorize(f"os_compute_api:os-volumes:snapshots:{doing}")
    found = volumes.snapshot(req, shown)
    return Tagged(found.metadata, lambda items, gone: req.conductor.change_volume_metadata(
        VolumeMetadataChange(kind=model.SNAPSHOT, id=found.id, items=items, delete=gone)))


#: Prefix of an EC2 id -> function that finds the resource.
FINDERS: Mapping[str, Callable[[Ec2Request, str, str], Tagged]] = {
    "i": _instance, "vol": _volume, "snap": _snapshot}
OF_OLD_CLIENTS = ("i",)


class NewTags(Ec2Arguments, frozen=True, kw_only=True):
    resource_id: tuple[str, ...]
    tag: tuple[Tag, ...]


class DoomedTag(msgspec.Struct, frozen=True, kw_only=True):
    key: str
    value: str | None = None


class TagRemoval(Ec2Arguments, frozen=True, kw_only=True):
    resource_id: tuple[str, ...]
    tag: tuple[DoomedTag, ...] = ()


def create_tags(req: Ec2Request, args: NewTags) -> Tree:
    """Create tags, or replace the values of existing keys. All resources are looked up before any is changed.

    Raises the resource type's NotFound code, InvalidParameterValue if the resource type has no tags, TagLimitExceeded.
    """
    found = _found(req, args.resource_id, CREATE)
    items = {tag.key: tag.value for tag in args.tag}
    if len(items) != len(args.tag):
        raise Ec2Error("InvalidParameterValue", "A tag key occurs more than once.")
    for key, value in items.items():
        if not 0 < len(key) <= 255 or len(value) > 255:
            raise invalid("Tag", key, "A key has 1 to 255 characters, a value at most 255.")
    for one in found:
        with failures.replaced(errors.OverQuota, lambda error: Ec2Error("TagLimitExceeded", error.message)):
            one.change(items, ())
    return {"return": True}


def delete_tags(req: Ec2Request, args: TagRemoval) -> Tree:
    """Delete tags: all if no key is given; a tag given with a value only if it has that value.

    Missing tags are not an error.
    """
    for one in _found(req, args.resource_id, DELETE):
        doomed = [tag.key for tag in args.tag if tag.key in one.tags and tag.value in (None, one.tags[tag.key])]
        gone = tuple(doomed if args.tag else one.tags)
        if gone:
            one.change({}, gone)
    return {"return": True}


def _found(req: Ec2Request, shown: Sequence[str], doing: str) -> list[Tagged]:
    lists.check_few(shown, "ResourceId")
    known = OF_OLD_CLIENTS if req.is_old else tuple(FINDERS)
    for one in shown:
        if one.partition("-")[0] not in known:
            raise invalid("ResourceId", one,
                          f"Only these resources have tags: {', '.join(f'{prefix}-...' for prefix in known)}.")
    return [FINDERS[one.partition("-")[0]](req, one, doing) for one in dict.fromkeys(shown)]


# -- describe


class DescribeTags(Ec2Listing, frozen=True, kw_only=True):
    pass


def describe_tags(req: Ec2Request, args: DescribeTags) -> Tree:
    """List the tags of all resources. Raises InvalidParameterValue for an unknown filter."""
    items = [*_tags(req, "i", INSTANCE, ((one.uuid, one.metadata) for one in every(req, DescribeInstances())))]
    if not req.is_old:
        items += _tags(req, "vol", VOLUME, (
            (one.id, one.metadata) for one in req.conductor.list_volumes(VolumeQuery())))
        items += _tags(req, "snap", SNAPSHOT, (
            (one.id, one.metadata) for one in req.conductor.list_volume_snapshots(VolumeQuery())))
    page = lists.chosen(items, args, FILTERS, "place")
    return {"tagSet": [{name: value for name, value in one.items() if name != "place"} for one in page.items],
            "nextToken": page.next_token}


def _tags(req: Ec2Request, prefix: str, kind: str, things: Iterable[tuple[str, Mapping[str, str]]]) -> list[Tree]:
    found = [(id, key, value) for id, metadata in things for key, value in sorted(metadata.items())]
    ids = req.ids(prefix, [id for id, _key, _value in found])
    return [{"resourceId": ids[id], "resourceType": kind, "key": key, "value": value, "place": f"{ids[id]}/{key}"}
            for id, key, value in found]
