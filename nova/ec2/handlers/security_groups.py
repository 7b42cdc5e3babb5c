"""Security groups and their rules, of either network back end."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import msgspec

from nova import errors
from nova.ec2 import lists
from nova.ec2.faults import Ec2Error, absent, invalid, missing, unsupported
from nova.ec2.handlers.run_instances import TagSpecification
from nova.ec2.parameters import Ec2Arguments, Ec2Listing
from nova.ec2.request import Ec2Request
from nova.ec2.xml import Tree
from nova.model import security_rules
from nova.model.base import Scope
from nova.model.ec2 import GROUP, RULE
from nova.model.security_groups import (
    NewSecurityGroup,
    NewSecurityRule,
    SecurityGroup,
    SecurityGroupQuery,
    SecurityRule,
)
from nova.model.security_rules import EVERYWHERE

RULES = "os_compute_api:os-security-groups"
#: What clients call a protocol, in small letters -> what rules have.
PROTOCOLS = {"tcp": "tcp", "6": "tcp", "udp": "udp", "17": "udp", "icmp": "icmp", "1": "icmp", "icmpv6": "icmpv6",
             "58": "icmpv6"}
ANY = "-1"
#: All traffic, where a back end has no word for it: protocol, first and last port.
WHOLE = (("icmp", -1, -1), ("tcp", 1, 65535), ("udp", 1, 65535))
#: Neutron refuses to delete a group that is there for this alone: it is in use.
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
    """By owner and name. InvalidGroup.NotFound (SecurityGroupNotFound to old clients)."""
    lists.check_not_both((*args.group_name, *args.group_id), args, "GroupId")
    found = sorted(_all(req), key=lambda one: (one.project_id, one.name))
    ids = req.ids("sg", [one.id for one in found])
    wanted = {*args.group_name, *args.group_id}
    for name in wanted:
        if not any(_is_named(one, ids[one.id], name) for one in found):
            raise absent(GROUP, name)
    shown = [_group(req, one) for one in found
             if not wanted or any(_is_named(one, ids[one.id], name) for name in wanted)]
    page = lists.chosen(shown, args, FILTERS, "groupName" if req.is_old else "groupId")
    return {"securityGroupInfo": page.items, "nextToken": page.next_token}


def _all(req: Ec2Request) -> Sequence[SecurityGroup]:
    found: Sequence[SecurityGroup] = req.conductor.list_security_groups(SecurityGroupQuery(scope=req.scope()))
    return found


def _of_project(req: Ec2Request, project_id: str) -> Sequence[SecurityGroup]:
    found: Sequence[SecurityGroup] = req.conductor.list_security_groups(
        SecurityGroupQuery(scope=Scope(project_id=project_id)))
    return found


def _is_named(group: SecurityGroup, id: str, word: str) -> bool:
    """By its name, or by EC2's id, which the first years called a name, too."""
    return word in (group.name, id)


def _group(req: Ec2Request, group: SecurityGroup) -> dict[str, object]:
    shown: dict[str, object] = {
        "groupDescription": group.description, "groupName": group.name, "ownerId": group.project_id,
        "ipPermissions": list(_permissions(req, group.rules))}
    return shown if req.is_old else {"groupId": req.id("sg", group.id), **shown, "ipPermissionsEgress": (),
                                     "tagSet": ()}


def _permissions(req: Ec2Request, rules: Iterable[SecurityRule]) -> Iterator[Tree]:
    """Rules for the same ports together."""
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


# -- groups made and deleted


class CreateSecurityGroup(Ec2Arguments, frozen=True, kw_only=True):
    group_name: str
    group_description: str
    vpc_id: str | None = None
    tag_specification: tuple[TagSpecification, ...] = ()


def create_security_group(req: Ec2Request, args: CreateSecurityGroup) -> Tree:
    """InvalidGroup.Duplicate; SecurityGroupLimitExceeded; InvalidParameterValue: name or description."""
    if args.vpc_id:
        raise unsupported("VpcId: there are no virtual private clouds here. A group is for all of a project's "
                          "instances.")
    if any(one.tag for one in args.tag_specification):
        raise unsupported("TagSpecification: security groups have no tags here.")
    strict = req.options.strict_validation
    for name, value, form in (("GroupName", args.group_name, _STRICT if strict else _LOOSE),
                              ("GroupDescription", args.group_description, _STRICT if strict else None)):
        if not 0 < len(value) <= 255 or (form is not None and not form.fullmatch(value)):
            raise invalid(name, value, "It must have 1 to 255 letters, digits, spaces, dashes and underscores."
                          if strict else "It must have 1 to 255 printable letters.")
    if any(one.name == args.group_name for one in _of_project(req, req.project_id)):  # Neutron would make another
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
    """InvalidGroup.NotFound, InUse; CannotDelete: the default one."""
    found = _named(req, args.group_name, args.group_id)
    try:
        req.conductor.delete_security_group(found.id, Scope(project_id=req.project_id))
    except errors.Invalid as error:
        if error.code != NEUTRON_REFUSED:
            raise
        raise Ec2Error("InvalidGroup.InUse", error.message) from None
    return {"return": True}


def _named(req: Ec2Request, name: str | None, id: str | None, project_id: str | None = None) -> SecurityGroup:
    """A group of the project (only an administrator names another's). MissingParameter; InvalidGroup.NotFound."""
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


# -- rules


class GroupSource(msgspec.Struct, frozen=True, kw_only=True):
    group_name: str | None = None
    group_id: str | None = None
    user_id: str | None = None
    description: str | None = None


class CidrSource(msgspec.Struct, frozen=True, kw_only=True):
    cidr_ip: str
    description: str | None = None


class Cidr6Source(msgspec.Struct, frozen=True, kw_only=True):
    cidr_ipv6: str
    description: str | None = None


class IpPermission(msgspec.Struct, frozen=True, kw_only=True):
    ip_protocol: str | None = None
    from_port: int | None = None
    to_port: int | None = None
    ip_ranges: tuple[CidrSource, ...] = ()
    ipv6_ranges: tuple[Cidr6Source, ...] = ()
    groups: tuple[GroupSource, ...] = ()


class RuleChange(Ec2Arguments, frozen=True, kw_only=True):
    """In one of two forms: a list of permissions, or the first years' single one."""

    group_name: str | None = None
    group_id: str | None = None
    ip_permissions: tuple[IpPermission, ...] = ()
    ip_protocol: str | None = None
    from_port: int | None = None
    to_port: int | None = None
    cidr_ip: str | None = None
    source_security_group_name: str | None = None
    source_security_group_owner_id: str | None = None
    security_group_rule_id: tuple[str, ...] = ()
    tag_specification: tuple[TagSpecification, ...] = ()


class Traffic(NamedTuple):
    """What a rule lets in: by these it is told from others."""

    protocol: str | None
    from_port: int | None
    to_port: int | None
    cidr: str | None
    source_id: str | None

    @property
    def words(self) -> str:
        """For a message."""
        ports = "" if self.protocol is None else f" {self.from_port} to {self.to_port}"
        return f"{self.protocol or 'all traffic'}{ports} from {self.cidr or 'a group'}"


def authorize_security_group_ingress(req: Ec2Request, args: RuleChange) -> Tree:
    """All that is asked for, or nothing where any of it is there already; of all traffic, what is missing.
    InvalidPermission.Duplicate; InvalidParameterValue, MissingParameter; InvalidGroup.NotFound;
    SecurityGroupLimitExceeded."""
    group = _named(req, args.group_name, args.group_id)
    wanted, known = _wanted(req, args), {_traffic(rule) for rule in group.rules}
    for together in wanted:
        if known.issuperset(together):
            raise Ec2Error("InvalidPermission.Duplicate",
                           f"This rule is in group {group.name} already: {together[0].words}")
    scope = Scope(project_id=req.project_id)
    missing_ones = dict.fromkeys(one for together in wanted for one in together if one not in known)
    made = [req.conductor.create_security_rule(NewSecurityRule(group_id=group.id, **one._asdict()), scope)
            for one in missing_ones]
    return {"return": True} if req.is_old else {
        "return": True, "securityGroupRuleSet": _rules(req, {rule.id: group for rule in made}, made)}


def revoke_security_group_ingress(req: Ec2Request, args: RuleChange) -> Tree:
    """InvalidPermission.NotFound (InvalidParameterValue to old clients): the group has no such rule."""
    group = _named(req, args.group_name, args.group_id)
    if args.security_group_rule_id:
        own = {rule.id: rule for rule in group.rules}
        meant = req.meant("sgr", args.security_group_rule_id)
        for shown, id in meant.items():
            if id not in own:
                raise absent(RULE, shown)
        doomed = [own[id] for id in dict.fromkeys(meant.values())]
    else:
        by_traffic = {_traffic(rule): rule for rule in group.rules}
        doomed = []
        for one in dict.fromkeys(one for together in _wanted(req, args) for one in together):
            if one not in by_traffic:
                raise Ec2Error("InvalidPermission.NotFound", f"Group {group.name} has no such rule: {one.words}")
            doomed.append(by_traffic[one])
    for rule in doomed:
        req.conductor.delete_security_rule(rule.id, Scope(project_id=req.project_id))
    return {"return": True}


def _traffic(rule: SecurityRule) -> Traffic:
    """As a rule would be asked for that says the same: a back end may leave out what is usual."""
    first, last = rule.from_port, rule.to_port
    if rule.protocol is not None and first is None and last is None:
        first, last = (-1, -1) if rule.protocol in ICMP else (1, 65535)
    return Traffic(rule.protocol, first, last, rule.cidr or (None if rule.source_id else EVERYWHERE[0]),
                   rule.source_id)


def _wanted(req: Ec2Request, args: RuleChange) -> Sequence[Sequence[Traffic]]:
    """What is asked for, in either form, in the order in which it stands: rules that are one to the client together.
    MissingParameter: nothing is."""
    lists.check_few([one for permission in args.ip_permissions for one in permission.groups], "IpPermissions.Groups")
    found = [together for permission in args.ip_permissions or _single(args)
             for together in _traffics(req, permission)]
    if not found:
        raise missing("IpPermissions")
    return found


def _single(args: RuleChange) -> tuple[IpPermission, ...]:
    """The first years' form, where a project stands behind its owner: ``user:project``."""
    if args.ip_protocol is None and args.cidr_ip is None and args.source_security_group_name is None:
        return ()
    sources: tuple[GroupSource, ...] = ()
    if args.source_security_group_name:
        owner = (args.source_security_group_owner_id or "").rpartition(":")[2]
        sources = (GroupSource(group_name=args.source_security_group_name, user_id=owner or None),)
    ranges = (CidrSource(cidr_ip=args.cidr_ip),) if args.cidr_ip else ()
    return (IpPermission(ip_protocol=args.ip_protocol, from_port=args.from_port, to_port=args.to_port,
                         ip_ranges=ranges, groups=sources),)


def _traffics(req: Ec2Request, permission: IpPermission) -> Iterator[Sequence[Traffic]]:
    ranges = [*(one.cidr_ip for one in permission.ip_ranges), *(one.cidr_ipv6 for one in permission.ipv6_ranges)]
    sources = [_named(req, one.group_name, one.group_id, one.user_id).id for one in permission.groups]
    if not ranges and not sources:
        raise missing("IpPermissions.1.IpRanges or IpPermissions.1.Groups")
    word = (permission.ip_protocol or ANY).lower()
    if word != ANY and word not in PROTOCOLS:
        raise invalid("IpProtocol", permission.ip_protocol, f"It must be one of {', '.join(PROTOCOLS)}, or {ANY}.")
    for cidr in ranges:
        whole = [("icmpv6" if ":" in cidr and one[0] == "icmp" else one[0], one[1], one[2]) for one in WHOLE]
        said = [(PROTOCOLS[word], permission.from_port, permission.to_port)] if word != ANY else whole
        yield [_checked(protocol, first, last, cidr, None) for protocol, first, last in said]
    for source in sources:
        if word == ANY:
            yield [_checked(None, None, None, None, source)]
        else:
            yield [_checked(PROTOCOLS[word], permission.from_port, permission.to_port, None, source)]


def _checked(protocol: str | None, first: int | None, last: int | None, cidr: str | None, source: str | None
             ) -> Traffic:
    """With all said that is usual. InvalidParameterValue."""
    if protocol in ("tcp", "udp") and first == 0:
        first = 1  # some clients count ports from 0, which there is none of
    rule = security_rules.checked(NewSecurityRule(group_id="", protocol=protocol, from_port=first, to_port=last,
                                                  cidr=cidr, source_id=source))
    return Traffic(rule.protocol, rule.from_port, rule.to_port, rule.cidr, rule.source_id)


# -- rules by themselves


class DescribeSecurityGroupRules(Ec2Listing, frozen=True, kw_only=True):
    security_group_rule_id: tuple[str, ...] = ()


RULE_FILTERS: lists.FilterPaths = {"group-id": "groupId", "security-group-rule-id": "securityGroupRuleId"}


def describe_security_group_rules(req: Ec2Request, args: DescribeSecurityGroupRules) -> Tree:
    """Of all the project's groups. InvalidSecurityGroupRuleId.NotFound."""
    groups = _all(req)
    owners = {rule.id: group for group in groups for rule in group.rules}
    shown = _rules(req, owners, [rule for group in groups for rule in group.rules])
    for id in args.security_group_rule_id:
        if not any(one["securityGroupRuleId"] == id for one in shown):
            raise absent(RULE, id)
    wanted = [one for one in shown if not args.security_group_rule_id
              or one["securityGroupRuleId"] in args.security_group_rule_id]
    page = lists.chosen(wanted, args, RULE_FILTERS, "securityGroupRuleId")
    return {"securityGroupRuleSet": page.items, "nextToken": page.next_token}


def _rules(req: Ec2Request, owners: Mapping[str, SecurityGroup], rules: Sequence[SecurityRule]) -> list[Tree]:
    """``owners``: by the rule's id."""
    ids = req.ids("sgr", [rule.id for rule in rules])
    groups = req.ids("sg", [one for rule in rules for one in (owners[rule.id].id, rule.source_id or "")])
    return [_rule(rule, owners[rule.id], ids, groups) for rule in rules]


def _rule(rule: SecurityRule, owner: SecurityGroup, ids: Mapping[str, str], groups: Mapping[str, str]) -> Tree:
    one = _traffic(rule)
    is_six = ":" in (one.cidr or "")
    return {
        "securityGroupRuleId": ids[rule.id], "groupId": groups[owner.id], "groupOwnerId": owner.project_id,
        "isEgress": False, "ipProtocol": one.protocol or ANY, "fromPort": one.from_port, "toPort": one.to_port,
        "cidrIpv4": None if is_six else one.cidr, "cidrIpv6": one.cidr if is_six else None,
        "referencedGroupInfo": {"groupId": groups.get(rule.source_id or ""), "userId": rule.source_project_id}
        if rule.source_id else None}
