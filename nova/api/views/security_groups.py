"""Security groups and their rules as the API showed them up to 2.35."""

from __future__ import annotations

from nova.api.request import Request
from nova.api.view import Out, View
from nova.model.network.security_groups import SecurityGroup, SecurityRule


def _group(rule: SecurityRule, req: Request) -> dict[str, object]:
    """Return the source group, whose members the rule allows."""
    return {"name": rule.source_name, "tenant_id": rule.source_project_id} if rule.source_name is not None else {}


def _range(rule: SecurityRule, req: Request) -> dict[str, object]:
    return {"cidr": rule.cidr} if rule.cidr else {}


_TRAFFIC = (
    Out("ip_protocol", "protocol"),
    Out("from_port", "from_port"),
    Out("to_port", "to_port"),
)

RULE = View(
    Out("id", "id"),
    Out("parent_group_id", "group_id"),
    *_TRAFFIC,
    Out("group", _group, type={"name?": "string", "tenant_id?": "string"}),
    Out("ip_range", _range, type={"cidr?": "string"}),
    of=SecurityRule,
)

DEFAULT_RULE = View(
    Out("id", lambda rule, req: int(rule.id), type="integer"),
    *_TRAFFIC,
    Out("ip_range", _range, type={"cidr?": "string"}),
    of=SecurityRule,
)

GROUP = View(
    Out("id", "id"),
    Out("name", "name"),
    Out("description", "description"),
    Out("tenant_id", "project_id"),
    Out("rules", lambda group, req: RULE.all(group.rules, req), type=[RULE]),
    of=SecurityGroup,
)
