"""Our rules are the contract's: names, checks, scope, old names and defaults."""

from __future__ import annotations

from nova.policies.base import ADMIN, BASE_RULES
from nova.policies.registry import RULES, list_rules
from tests.contract import rows

pytestmark = rows.needs_contract


def test_rules_equal_the_contract() -> None:
    theirs = {entry["rule"]: (entry["check"], entry.get("old", {}).get("name"), entry.get("old", {}).get("check"))
              for entry in rows.load("policies.yaml")["rules"]}
    ours = {rule.name: (rule.check, rule.old.name if rule.old else None, rule.old.check if rule.old else None)
            for rule in RULES}
    assert ours == theirs
    assert len(RULES) == len(ours)


def test_base_rules_equal_the_contract() -> None:
    theirs = {entry["rule"]: (entry["check"], entry.get("old_name"), entry.get("old_default"))
              for entry in rows.load("policies.yaml")["base_rules"]}
    ours = {rule.name: (rule.check, rule.old.name if rule.old else None, rule.old.check if rule.old else None)
            for rule in BASE_RULES}
    assert ours == theirs


def test_operations_of_rules_are_the_contracts() -> None:
    for entry in rows.load("policies.yaml")["rules"]:
        ours = next(rule for rule in RULES if rule.name == entry["rule"])
        assert set(ours.operations) <= set(entry["operations"])
        assert {id for id in entry["operations"] if "os-volumes_boot" not in id} <= set(ours.operations)


def test_every_rule_is_project_scoped() -> None:
    base = {rule.name for rule in BASE_RULES}
    assert all(rule.scope_types == ["project"] for rule in list_rules() if rule.name not in base)
    assert ADMIN == "rule:context_is_admin"
