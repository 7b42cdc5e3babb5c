"""Bodies and queries of security groups, their rules and members."""

from __future__ import annotations

from nova.web.schema import ACCEPT, BODY, Body, Query, param, row

_OPEN = row(BODY, "object", unknown=ACCEPT)

LIST_QUERY = Query(
    param("limit", "integer_like", min_length=1, min=0),
    param("offset", "integer_like", min_length=1, min=0),
    param("all_tenants"))

WRITE = Body(
    _OPEN,
    row("security_group", "object", required=True, unknown=ACCEPT),
    row("security_group.name", "string", max_length=255, required=True),
    row("security_group.description", "string", max_length=255, required=True))

RULE = Body(
    _OPEN,
    row("security_group_rule", "object", required=True, unknown=ACCEPT),
    row("security_group_rule.group_id", ("string", "null"), format="uuid"),
    row("security_group_rule.parent_group_id", "string", format="uuid", required=True),
    row("security_group_rule.to_port"),
    row("security_group_rule.from_port"),
    row("security_group_rule.ip_protocol"),
    row("security_group_rule.cidr"))

DEFAULT_RULE = Body(
    _OPEN,
    row("security_group_default_rule", "object", required=True, unknown=ACCEPT),
    row("security_group_default_rule.to_port"),
    row("security_group_default_rule.from_port"),
    row("security_group_default_rule.ip_protocol"),
    row("security_group_default_rule.cidr"))


def _member(action: str) -> Body:
    return Body(
        _OPEN,
        row(action, "object", required=True),
        row(f"{action}.name", "string", min_length=1, required=True))


ADD, REMOVE = _member("addSecurityGroup"), _member("removeSecurityGroup")
