"""Actions on security groups, of either network backend."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from nova import errors
from nova.legacy.ec2 import lists
from nova.legacy.ec2.faults import Ec2Error, absent, invalid, missing, unsupported
from nova.legacy.ec2.handlers.run_instances import TagSpecification
from nova.legacy.ec2.parameters import Ec2Arguments, Ec2Listing
from nova.legacy.ec2.request import Ec2Request
from nova.legacy.ec2.xml import Tree
from nova.model.base import Scope
from nova.model.ec2 import GROUP
from nova.model.network.security_groups import NewSecurityGroup, SecurityGroup, SecurityGroupQuery, SecurityRule

RULES = "os_compute_api:os-security-groups"
ANY = "-1"
#: All traffic, for backends that cannot express it: protocol, first and last port.
WHOLE = (("icmp", -1, -1), ("tcp", 1, 65535), ("udp", 1, 65535))
#: The error code of Neutron's refusal to delete an existing group: the group is in use.
NEUTRON_REFUSED = "network.refused"
ICMP = ("icmp", "icmpv6")
_STRICT, _LOOSE = re.compile(r"[a-zA-Z0-9 _-]{1,255}"), re.compile(r"[\x20-\x7e]{1,255}")

FILTERS: lists.FilterPaths = {
    "group-id": "groupId", "group-name": "groupName", "owner-id": "ownerId", "description": "groupDescription",
    "ip-permission.protocol": "ipPermissions.ipProtocol", "ip-permission.cidr": "ipPermissions.ipRanges.cidrIp",
    "ip-permission.from-port": "ipPermissions.fromPort", "ip-permission.to-port": "ipPermissions.toPort",
    "ip-permission.group-name": "ipPermissions.groups.groupName",
    "ip-permission.group-id": "ipPermissions.groups.groupId", "vpc-id": "vpcId"}


class DescribeSecurityGroups(Ec2Listing, frozen=True, kw_only=True):
    group_name: tuple[str, ...] = ()
    group_id: tuple[str, ...] = ()


def describe_security_groups(req: Ec2Request, args: DescribeSecurityGroups) -> Tree:
    """List security groups, sorted by project and name.

    Raises InvalidGroup.NotFound (SecurityGroupNotFound for old clients).
    """
    lists.check_not_both((*args.group_name, *args.group_id), args, "GroupId")
    found = sorted(every_group(req), key=lambda one: (one.project_id, one.name))
    ids = req.ids("sg", [one.id for one in found])
    wanted = {*args.group_name, *args.group_id}
    for name in wanted:
        if not any(_is_named(one, ids[one.id], name) for one in found):
            raise absent(GROUP, name)
    shown = [_group(req, one) for one in found
             if not wanted or any(_is_named(one, ids[one.id], name) for name in wanted)]
    page = lists.chosen(shown, args, FILTERS, "groupName" if req.is_old else "groupId")
    return {"securityGroupInfo": page.items, "nextToken": page.next_token}


def every_group(req: Ec2Request) -> Sequence[SecurityGroup]:
    """Return the project's groups; the groups of all projects for an administrator with an old client."""
    found: Sequence[SecurityGroup] = req.conductor.list_security_groups(SecurityGroupQuery(scope=req.scope()))
    return found


def _of_project(req: Ec2Request, project_id: str) -> Sequence[SecurityGroup]:
    found: Sequence[SecurityGroup] = req.conductor.list_security_groups(
        SecurityGroupQuery(scope=Scope(project_id=project_id)))
    return found


def _is_named(group: SecurityGroup, id: str, word: str) -> bool:
    """Return whether the text is the group's name or EC2 id; old API versions accept an id as the name."""
    return word in (group.name, id)


def _group(req: Ec2Request, group: SecurityGroup) -> dict[str, object]:
    shown: dict[str, object] = {
        "groupDescription": group.description, "groupName": group.name, "ownerId": group.project_id,
        "ipPermissions": list(_permissions(req, group.rules))}
    return shown if req.is_old else {"groupId": req.id("sg", group.id), **shown, "ipPermissionsEgress": (),
                                     "tagSet": ()}


def _permissions(req: Ec2Request, rules: Iterable[SecurityRule]) -> Iterator[Tree]:
    """Yield permissions, each of all rules with the same protocol and ports."""
    together: dict[tuple[str, int | None, int | None], list[SecurityRule]] = {}
    for rule in rules:
        for ports in _shown_ports(req, rule):
            together.setdefault(ports, []).append(rule)
    sources = req.ids("sg", [rule.source_id or "" for rule in rules]) if not req.is_old else {}
    for (protocol, first, last), members in together.items():
        groups: list[Tree] = []
        for rule in members:
            if rule.source_id:
                named: dict[str, object] = {"groupName": rule.source_name, "userId": rule.source_project_id}
                groups.append(named if req.is_old else {"groupId": sources[rule.source_id], **named})
        ranges = [rule.cidr for rule in members if not rule.source_id]
        shown: dict[str, object] = {
            "ipProtocol": protocol, "fromPort": first, "toPort": last, "groups": groups,
            "ipRanges": [{"cidrIp": cidr or "0.0.0.0/0"} for cidr in ranges if ":" not in (cidr or "")]}
        yield shown if req.is_old else {**shown, "ipv6Ranges": [{"cidrIpv6": cidr} for cidr in ranges
                                                                 if ":" in (cidr or "")], "prefixListIds": ()}


def _shown_ports(req: Ec2Request, rule: SecurityRule) -> Sequence[tuple[str, int | None, int | None]]:
    if rule.protocol is None:
        return WHOLE if req.is_old else ((ANY, None, None),)
    usual = (-1, -1) if rule.protocol in ICMP else (1, 65535)
    return ((rule.protocol, usual[0] if rule.from_port is None else rule.from_port,
             usual[1] if rule.to_port is None else rule.to_port),)


# -- create and delete


class CreateSecurityGroup(Ec2Arguments, frozen=True, kw_only=True):
    group_name: str
    group_description: str
    vpc_id: str | None = None
    tag_specification: tuple[TagSpecification, ...] = ()


def create_security_group(req: Ec2Request, args: CreateSecurityGroup) -> Tree:
    """Create a security group.

    Raises InvalidGroup.Duplicate, SecurityGroupLimitExceeded, InvalidParameterValue for the name or description.
    """
    if args.vpc_id:
        raise unsupported("VpcId: this cloud has no virtual private clouds. A group is valid for all instances "
                          "of a project.")
    if any(one.tag for one in args.tag_specification):
        raise unsupported("TagSpecification: this cloud does not support tags of security groups.")
    strict = req.options.strict_validation
    for name, value, form in (("GroupName", args.group_name, _STRICT if strict else _LOOSE),
                              ("GroupDescription", args.group_description, _STRICT if strict else None)):
        if not 0 < len(value) <= 255 or (form is not None and not form.fullmatch(value)):
            raise invalid(name, value, "It must have 1 to 255 letters, digits, spaces, dashes and underscores."
                          if strict else "It must have 1 to 255 printable characters.")
    if any(one.name == args.group_name for one in _of_project(req, req.project_id)):  # Neutron allows duplicates
        raise Ec2Error("InvalidGroup.Duplicate", f"The security group '{args.group_name}' already exists")
    made: SecurityGroup = req.conductor.create_security_group(NewSecurityGroup(
        name=args.group_name, description=args.group_description, project_id=req.project_id))
    if req.is_old:
        return {"securityGroupSet": [_group(req, made)]}
    return {"return": True, "groupId": req.id("sg", made.id)}


class GroupNamed(Ec2Arguments, frozen=True, kw_only=True):
    group_name: str | None = None
    group_id: str | None = None


def delete_security_group(req: Ec2Request, args: GroupNamed) -> Tree:
    """Delete a security group. Raises InvalidGroup.NotFound or InUse, CannotDelete for the default group."""
    found = group_named(req, args.group_name, args.group_id)
    try:
        req.conductor.delete_security_group(found.id, Scope(project_id=req.project_id))
    except errors.Invalid as error:
        if error.code != NEUTRON_REFUSED:
            raise
        raise Ec2Error("InvalidGroup.InUse", error.message) from None
    return {"return": True}


def group_named(req: Ec2Request, name: str | None, id: str | None, project_id: str | None = None) -> SecurityGroup:
    """Return a group of the project by name or id; only administrators may name another project's group.

    Raises MissingParameter, InvalidGroup.NotFound.
    """
    word = id or name
    if not word:
        raise missing("GroupName or GroupId")
    if project_id not in (None, "", req.project_id) and not req.context.is_admin:
        raise absent(GROUP, word)
    groups = _of_project(req, project_id or req.project_id)
    ids = req.ids("sg", [one.id for one in groups])
    for one in groups:
        if _is_named(one, ids[one.id], word):
            return one
    raise absent(GROUP, word)
