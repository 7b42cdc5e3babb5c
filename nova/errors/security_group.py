"""Errors about security groups and their rules."""

from __future__ import annotations

from nova.errors import kinds

BadCidr = kinds.Invalid.row("security_group.bad_cidr", "Invalid cidr {cidr}: {reason}")
BadId = kinds.Invalid.row("security_group.bad_id", "Security group id should be a uuid, not '{given}'.")
BadPorts = kinds.Invalid.row("security_group.bad_ports", "Invalid port range {from_port}:{to_port}. {reason}")
BadProtocol = kinds.Invalid.row("security_group.bad_protocol",
    "Invalid IP protocol {protocol}: it must be one of {allowed}.")
BadRuleId = kinds.Invalid.row("security_group.bad_rule_id",
    "Security group rule id should be a uuid, not '{given}'.")
BadValue = kinds.Invalid.row("security_group.bad_value", "Invalid {name}: {value!r} is not {what}.")
Changed = kinds.Invalid.row("security_group.changed", "A security group was renamed or deleted meanwhile.")
Default = kinds.Invalid.row("security_group.default", "Unable to {what} system group 'default'.")
DefaultRuleThere = kinds.Conflict.row("security_group.default_rule_there", "This default rule already exists.")
InUse = kinds.Invalid.row("security_group.in_use", "Security group is still in use.")
Member = kinds.Invalid.row("security_group.member",
    "Security group {group} is already associated with the instance {server}.")
NameTaken = kinds.Invalid.row("security_group.name_taken",
    "Security group {name} already exists for project {project}.")
NoPort = kinds.Invalid.row("security_group.no_port",
    "Security groups cannot be applied to server {server}: it has no port with both port security and an address.")
NoRule = kinds.NotFound.row("security_group.no_rule", "Security group rule {rule} not found.")
NotAMember = kinds.NotFound.row("security_group.not_a_member",
    "Security group {name} is not associated with server {server}.")
NotEnough = kinds.Invalid.row("security_group.not_enough",
    "Not enough parameters to build a valid rule: {what} is missing.")
NotFound = kinds.NotFound.row("security_group.not_found", "Security group {group} not found.")
NotMember = kinds.NotFound.row("security_group.not_member",
    "Security group {group} is not associated with the instance {server}.")
OverQuota = kinds.OverQuota.row("security_group.over_quota",
    "Quota exceeded, too many security groups: at most {limit}.")
RuleThere = kinds.Invalid.row("security_group.rule_there", "This rule already exists in group {group}.")
RulesOverQuota = kinds.OverQuota.row("security_group.rules_over_quota",
    "Quota exceeded, too many security group rules: at most {limit}.")
