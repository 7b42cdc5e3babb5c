"""Actions on the ingress rules of security groups, in both forms in which clients specify rules."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import msgspec

from nova.legacy.ec2 import lists
from nova.legacy.ec2.faults import Ec2Error, absent, invalid, missing
from nova.legacy.ec2.handlers.run_instances import TagSpecification
from nova.legacy.ec2.handlers.security_groups import ANY, ICMP, WHOLE, every_group, group_named
from nova.legacy.ec2.parameters import Ec2Arguments, Ec2Listing
from nova.legacy.ec2.request import Ec2Request
from nova.legacy.ec2.xml import Tree
from nova.model.base import Scope
from nova.model.ec2 import RULE
from nova.model.network import security_rules
from nova.model.network.security_groups import NewSecurityRule, SecurityGroup, SecurityRule
from nova.model.network.security_rules import EVERYWHERE

#: A client's protocol name or number, in lower case -> the protocol of rules.
PROTOCOLS = {"tcp": "tcp", "6": "tcp", "udp": "udp", "17": "udp", "icmp": "icmp", "1": "icmp", "icmpv6": "icmpv6",
             "58": "icmpv6"}


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
    """The rules to add or remove, in one of two forms: a list of permissions, or the single one of old clients."""

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
    """The traffic that a rule allows; these fields identify a rule within its group."""

    protocol: str | None
    from_port: int | None
    to_port: int | None
    cidr: str | None
    source_id: str | None

    @property
    def words(self) -> str:
        """A description for messages."""
        ports = "" if self.protocol is None else f" {self.from_port} to {self.to_port}"
        return f"{self.protocol or 'all traffic'}{ports} from {self.cidr or 'a group'}"


def authorize_security_group_ingress(req: Ec2Request, args: RuleChange) -> Tree:
    """Add all requested rules, or none if one of them already exists; for all traffic, add only the missing rules.

    Raises InvalidPermission.Duplicate, InvalidParameterValue, MissingParameter, InvalidGroup.NotFound,
    SecurityGroupLimitExceeded.
    """
    group = group_named(req, args.group_name, args.group_id)
    wanted, known = _wanted(req, args), {_traffic(rule) for rule in group.rules}
    for together in wanted:
        if known.issuperset(together):
            raise Ec2Error("InvalidPermission.Duplicate",
                           f"Group {group.name} already has this rule: {together[0].words}")
    scope = Scope(project_id=req.project_id)
    missing_ones = dict.fromkeys(one for together in wanted for one in together if one not in known)
    made = [req.conductor.create_security_rule(NewSecurityRule(group_id=group.id, **one._asdict()), scope)
            for one in missing_ones]
    return {"return": True} if req.is_old else {
        "return": True, "securityGroupRuleSet": _rules(req, {rule.id: group for rule in made}, made)}


def revoke_security_group_ingress(req: Ec2Request, args: RuleChange) -> Tree:
    """Remove rules from a group.

    Raises InvalidPermission.NotFound (InvalidParameterValue for old clients) if the group has no such rule.
    """
    group = group_named(req, args.group_name, args.group_id)
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
    """Return a rule's traffic as a request would specify it: a backend may omit default values."""
    first, last = rule.from_port, rule.to_port
    if rule.protocol is not None and first is None and last is None:
        first, last = (-1, -1) if rule.protocol in ICMP else (1, 65535)
    return Traffic(rule.protocol, first, last, rule.cidr or (None if rule.source_id else EVERYWHERE[0]),
                   rule.source_id)


def _wanted(req: Ec2Request, args: RuleChange) -> Sequence[Sequence[Traffic]]:
    """Return the requested traffic in the request's order; each item has the rules that are one rule to the client.

    Raises MissingParameter if the request has no rules.
    """
    lists.check_few([one for permission in args.ip_permissions for one in permission.groups], "IpPermissions.Groups")
    found = [together for permission in args.ip_permissions or _single(args)
             for together in _traffics(req, permission)]
    if not found:
        raise missing("IpPermissions")
    return found


def _single(args: RuleChange) -> tuple[IpPermission, ...]:
    """Return the permission in the form of old clients, where the source group's owner is ``user:project``."""
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
    sources = [group_named(req, one.group_name, one.group_id, one.user_id).id for one in permission.groups]
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
    """Return validated traffic with defaults filled in. Raises InvalidParameterValue."""
    if protocol in ("tcp", "udp") and first == 0:
        first = 1  # some clients start ranges at port 0, which is not valid
    rule = security_rules.checked(NewSecurityRule(group_id="", protocol=protocol, from_port=first, to_port=last,
                                                  cidr=cidr, source_id=source))
    return Traffic(rule.protocol, rule.from_port, rule.to_port, rule.cidr, rule.source_id)


# -- describe rules


class DescribeSecurityGroupRules(Ec2Listing, frozen=True, kw_only=True):
    security_group_rule_id: tuple[str, ...] = ()


RULE_FILTERS: lists.FilterPaths = {"group-id": "groupId", "security-group-rule-id": "securityGroupRuleId"}


def describe_security_group_rules(req: Ec2Request, args: DescribeSecurityGroupRules) -> Tree:
    """List the rules of all the project's groups. Raises InvalidSecurityGroupRuleId.NotFound."""
    groups = every_group(req)
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
    """Return the views of the rules. ``owners``: rule id -> group."""
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
