"""Security groups, their rules, the default rules of new projects, and the servers in groups."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypedDict

import msgspec

from nova import errors, failures
from nova.api.handlers.server_targets import target
from nova.api.request import Request
from nova.api.view import answers
from nova.api.views.security_groups import DEFAULT_RULE, GROUP, RULE
from nova.model.base import Scope
from nova.model.network.security_groups import (
    GroupMembership,
    NewSecurityGroup,
    NewSecurityRule,
    SecurityGroup,
    SecurityGroupQuery,
    SecurityGroupUpdate,
)
from nova.model.server.servers import ServerQuery


@answers({"security_groups": [GROUP]})
def index(req: Request) -> dict[str, object]:
    """List the security groups of the caller's project; for admins with all_tenants, of all projects. Limit 0 means
    unlimited."""
    everywhere = "all_tenants" in req.query and req.context.is_admin
    scope = Scope() if everywhere else Scope(project_id=req.project_id)
    page = msgspec.structs.replace(req.page(), limit=req.limit() or None, marker=None)
    groups = req.conductor.list_security_groups(SecurityGroupQuery(scope=scope, page=page))
    return {"security_groups": GROUP.all(groups, req)}


@answers({"security_group": GROUP})
def show(req: Request, security_group_id: str) -> dict[str, object]:
    """Show one security group with its rules. Raises security_group.NotFound, network.Absent (404); network.BadId
    (400)."""
    return {"security_group": GROUP(req.conductor.get_security_group(security_group_id, req.scope()), req)}


@answers({"security_group": GROUP})
def create(req: Request) -> dict[str, object]:
    """Create a security group in the caller's project. Raises security_group.BadValue, security_group.NameTaken (400);
    security_group.OverQuota (403)."""
    name, description = _words(req.body["security_group"])
    made = req.conductor.create_security_group(NewSecurityGroup(
        name=name, description=description, project_id=req.project_id))
    return {"security_group": GROUP(made, req)}


@answers({"security_group": GROUP})
def update(req: Request, security_group_id: str) -> dict[str, object]:
    """Change the name and description of a security group; both are required. Raises security_group.NotFound (404);
    security_group.BadValue, NameTaken, Default (400)."""
    name, description = _words(req.body["security_group"])
    changed = req.conductor.update_security_group(SecurityGroupUpdate(
        id=security_group_id, scope=req.scope(), name=name, description=description))
    return {"security_group": GROUP(changed, req)}


def delete(req: Request, security_group_id: str) -> None:
    """Delete a security group without servers. Raises security_group.NotFound (404); security_group.Default,
    security_group.InUse (400)."""
    req.conductor.delete_security_group(security_group_id, req.scope())


# -- rules

@answers({"security_group_rule": RULE})
def create_rule(req: Request) -> dict[str, object]:
    """Add a rule to a security group; responds when hosts were updated. The source is a range or a group. Raises
    security_group.NotFound (404); security_group.BadCidr, BadPorts, BadProtocol, BadValue, NotEnough, RuleThere (400);
    security_group.RulesOverQuota (403)."""
    asked = req.body["security_group_rule"]
    source = asked.get("group_id")
    wanted = NewSecurityRule(group_id=str(asked["parent_group_id"]), source_id=None if source is None else str(source),
                             **_traffic(asked))
    return {"security_group_rule": RULE(req.conductor.create_security_rule(wanted, req.scope()), req)}


def delete_rule(req: Request, rule_id: str) -> None:
    """Delete a rule of a security group; responds when hosts were updated. Raises security_group.NoRule,
    security_group.NotFound (404); security_group.BadRuleId (400)."""
    req.conductor.delete_security_rule(rule_id, req.scope())


@answers({"security_group_default_rules": [DEFAULT_RULE]})
def default_rules(req: Request) -> dict[str, object]:
    """List the initial rules of a new project's default group."""
    return {"security_group_default_rules": DEFAULT_RULE.all(req.conductor.list_default_rules(), req)}


@answers({"security_group_default_rule": DEFAULT_RULE})
def default_rule(req: Request, rule_id: str) -> dict[str, object]:
    """Show one default rule. Raises security_group.NoRule (404); security_group.BadRuleId (400)."""
    return {"security_group_default_rule": DEFAULT_RULE(req.conductor.get_default_rule(rule_id), req)}


@answers({"security_group_default_rule": DEFAULT_RULE})
def create_default_rule(req: Request) -> dict[str, object]:
    """Add a default rule; existing groups do not change. Raises security_group.DefaultRuleThere (409);
    security_group.BadCidr, BadPorts, BadProtocol, BadValue, NotEnough (400)."""
    wanted = NewSecurityRule(group_id="", **_traffic(req.body["security_group_default_rule"]))
    return {"security_group_default_rule": DEFAULT_RULE(req.conductor.create_default_rule(wanted), req)}


def delete_default_rule(req: Request, rule_id: str) -> None:
    """Delete a default rule; existing groups do not change. Raises security_group.NoRule (404);
    security_group.BadRuleId (400)."""
    req.conductor.delete_default_rule(rule_id)


# -- servers in groups

@answers({"security_groups": [GROUP]})
def of_server(req: Request, server_id: str) -> dict[str, object]:
    """List the security groups of a server. Raises server.NotFound (404)."""
    target(req, server_id)
    groups: tuple[SecurityGroup, ...] = req.conductor.list_server_security_groups(
        ServerQuery(uuid=server_id, scope=req.scope()))
    return {"security_groups": GROUP.all(groups, req)}


def add(req: Request, server_id: str) -> None:
    """Add a server to a security group, by the group's name or id. Raises server.NotFound, security_group.NotFound
    (404); security_group.BadValue, Member, NoPort (400); network.GroupAmbiguous, server.Going (409)."""
    _change(req, server_id, "addSecurityGroup", True)


def remove(req: Request, server_id: str) -> None:
    """Remove a server from a security group, by the group's name or id. Raises server.NotFound,
    security_group.NotFound, NotMember, NotAMember (404); security_group.BadValue (400)."""
    _change(req, server_id, "removeSecurityGroup", False)


def _change(req: Request, server_id: str, action: str, member: bool) -> None:
    target(req, server_id)
    name = req.body[action]["name"]
    if not name.strip():
        raise errors.security_group.BadValue(name="name", value=name, what="the name or id of a security group")
    req.conductor.change_group_membership(GroupMembership(server_uuid=server_id, group=name, member=member))


# -- request bodies

def _words(asked: Mapping[str, str]) -> tuple[str, str]:
    """Return name and description unchanged, including surrounding blanks."""
    name, description = asked["name"], asked["description"]
    for what, value in (("name", name), ("description", description)):
        if not value.isprintable() or (what == "name" and not value.strip()):
            raise errors.security_group.BadValue(name=f"security group {what}", value=value, what="printable text")
    return name, description


class _Traffic(TypedDict):
    protocol: str | None
    cidr: str | None
    from_port: int | None
    to_port: int | None


def _traffic(asked: Mapping[str, object]) -> _Traffic:
    return {"protocol": _text(asked, "ip_protocol"), "cidr": _text(asked, "cidr"),
            "from_port": _port(asked, "from_port"), "to_port": _port(asked, "to_port")}


def _text(asked: Mapping[str, object], name: str) -> str | None:
    value = asked.get(name)
    if value is None or isinstance(value, str):
        return value or None
    raise errors.security_group.BadValue(name=name, value=value, what="text")


def _port(asked: Mapping[str, object], name: str) -> int | None:
    value = asked.get(name)
    if value is None or value == "":
        return None
    if not isinstance(value, (int, str)) or isinstance(value, bool):
        raise errors.security_group.BadValue(name=name, value=value, what="a number")
    with failures.replaced(ValueError,
            lambda _: errors.security_group.BadValue(name=name, value=value, what="a number")):
        number = int(value)
    if abs(number) > 0x7FFFFFFF:
        raise errors.security_group.BadValue(name=name, value=value, what="a port, or a type or code of ICMP")
    return number
