"""All rules in the form of the policy library and its sample generator (entry point oslo.policy.policies)."""

from __future__ import annotations

from oslo_policy import policy

from nova.policies import (
    certificates,
    flavors,
    hosts,
    legacy_networks,
    networks,
    placement,
    projects,
    server_actions,
    server_parts,
    servers,
    volumes,
)
from nova.policies.base import BASE_RULES, BaseRule, Rule

RULES: tuple[Rule, ...] = (*servers.RULES, *server_actions.RULES, *server_parts.RULES, *flavors.RULES,
                           *projects.RULES, *hosts.RULES, *networks.RULES, *volumes.RULES)  # the compute API's
ALL_RULES: tuple[Rule, ...] = (*RULES, *legacy_networks.RULES, *certificates.RULES, *placement.RULES)
SINCE = "21.0.0"
REASON = "Reader, member and manager roles within a project replaced admin and owner."


def _old(rule: Rule | BaseRule) -> policy.DeprecatedRule | None:
    if rule.old is None:
        return None
    return policy.DeprecatedRule(rule.old.name, rule.old.check, deprecated_reason=REASON, deprecated_since=SINCE)


def _base(rule: BaseRule) -> policy.RuleDefault:
    if rule.deprecated:
        return policy.RuleDefault(rule.name, rule.check, rule.description, deprecated_for_removal=True,
                                  deprecated_reason=REASON, deprecated_since=SINCE)
    return policy.RuleDefault(rule.name, rule.check, rule.description, deprecated_rule=_old(rule))


def _operation(id: str) -> policy.Operation:
    method, path = id.split(" ", 1)
    path, _, action = path.partition("#")
    return {"method": method, "path": f"{path} ({action})" if action else path}


def _documented(rule: Rule) -> policy.DocumentedRuleDefault:
    description = f"Checked {rule.when}." if rule.when else "Checked for each of these operations."
    return policy.DocumentedRuleDefault(rule.name, rule.check, description, [_operation(id) for id in rule.operations],
                                        deprecated_rule=_old(rule), scope_types=["project"])


def list_rules() -> list[policy.RuleDefault]:
    """Return all defaults, base rules first, for oslo.policy's entry point."""
    return [*map(_base, BASE_RULES), *map(_documented, ALL_RULES)]
