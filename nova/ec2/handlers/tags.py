"""Tags: of instances alone, whose metadata they are."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from nova import errors
from nova.ec2 import lists
from nova.ec2.faults import Ec2Error, absent, invalid
from nova.ec2.handlers.instances import DescribeInstances, every
from nova.ec2.handlers.run_instances import Tag
from nova.ec2.parameters import Ec2Arguments, Listing
from nova.ec2.request import Ec2Request
from nova.ec2.xml import Tree
from nova.model.ec2 import INSTANCE
from nova.model.servers import MetadataChange, ServerQuery, ServerTarget

UPDATE, DELETE = "os_compute_api:server-metadata:create", "os_compute_api:server-metadata:delete"

FILTERS: lists.FilterPaths = {"key": "key", "value": "value", "resource-id": "resourceId",
                              "resource-type": "resourceType"}


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
    """Of a key that is there, the value changes. InvalidInstanceID.NotFound; InvalidParameterValue: no instance;
    TagLimitExceeded."""
    servers = _instances(req, args.resource_id, UPDATE)
    items = {tag.key: tag.value for tag in args.tag}
    if len(items) != len(args.tag):
        raise Ec2Error("InvalidParameterValue", "A key is given more than once.")
    for key, value in items.items():
        if not 0 < len(key) <= 255 or len(value) > 255:
            raise invalid("Tag", key, "A key has 1 to 255 letters, a value 255 at most.")
    for server in servers:
        try:
            req.conductor.change_metadata(MetadataChange(uuid=server.uuid, items=items))
        except errors.OverQuota as error:
            raise Ec2Error("TagLimitExceeded", error.message) from None
    return {"return": True}


def delete_tags(req: Ec2Request, args: TagRemoval) -> Tree:
    """All of them where no key is named; one with a value only where it has that value. What is not there is no
    error."""
    servers = _instances(req, args.resource_id, DELETE)
    for server in servers:
        now = req.conductor.get_server(ServerQuery(uuid=server.uuid, scope=req.scope(), as_kept=True)).metadata
        doomed = [tag.key for tag in args.tag if tag.key in now and tag.value in (None, now[tag.key])]
        gone = tuple(doomed if args.tag else now)
        if gone:
            req.conductor.change_metadata(MetadataChange(uuid=server.uuid, delete=gone))
    return {"return": True}


def _instances(req: Ec2Request, shown: Sequence[str], rule: str) -> list[ServerTarget]:
    lists.check_few(shown, "ResourceId")
    for one in shown:
        if not one.startswith("i-"):
            raise invalid("ResourceId", one, "Only instances have tags here.")
    found = []
    for one, uuid in req.meant("i", shown).items():
        try:
            server: ServerTarget = req.conductor.get_target(ServerQuery(uuid=uuid, scope=req.scope()))
        except errors.NotFound:
            raise absent(INSTANCE, one) from None
        req.authorize(rule, server.project_id, server.user_id)
        if server.locked and not req.context.is_admin:
            raise errors.server.Locked(uuid=server.uuid)
        found.append(server)
    return found


class DescribeTags(Listing, frozen=True, kw_only=True):
    pass


def describe_tags(req: Ec2Request, args: DescribeTags) -> Tree:
    """InvalidParameterValue: a filter."""
    servers = every(req, DescribeInstances())
    ids = req.ids("i", [one.uuid for one in servers])
    items: list[Tree] = [{"resourceId": ids[one.uuid], "resourceType": INSTANCE, "key": key, "value": value,
                          "place": f"{ids[one.uuid]}/{key}"}
                         for one in servers for key, value in sorted(one.metadata.items())]
    page = lists.chosen(items, args, FILTERS, "place")
    return {"tagSet": [{name: value for name, value in one.items() if name != "place"} for one in page.items],
            "nextToken": page.next_token}
