"""Our rules are the contract's: names, checks, scope, old names and defaults."""

from __future__ import annotations

import pathlib
import re

from nova.api import handlers
from nova.api.routes import ROUTES
from nova.policies import Policy, legacy_networks
from nova.policies.base import ADMIN, BASE_RULES
from nova.policies.registry import RULES, list_rules
from tests.contract import rows
from tests.fakes.api import configuration

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


def test_rule_of_each_route_names_its_operation() -> None:
    operations = {rule.name: set(rule.operations) for rule in RULES}
    for route in ROUTES:
        if route.policy is not None:
            assert route.id.replace("/os-volumes_boot", "/servers") in operations[route.policy], route.id


def test_rules_that_handlers_ask_beside_are_those_the_contract_names() -> None:
    """A rule's name in a handler is a rule: one that is not would be a programming error at the first request."""
    known = {rule.name for rule in (*RULES, *legacy_networks.RULES)}
    prefix = re.compile(r'"((?:os_compute_api|compute|network):[\w:-]+)"')
    for path in pathlib.Path(handlers.__file__).parent.glob("*.py"):
        for name in prefix.findall(path.read_text()):
            assert name in known or any(one.startswith(name) for one in known), f"{path.name}: {name}"


def test_options_of_policy_have_the_contracts_names_and_defaults() -> None:
    contract = rows.load("policies.yaml")
    conf = configuration()
    policy = Policy(conf)
    for key in ("enforce_new_defaults", "policy_file"):
        assert contract[key]["option"] == f"[oslo_policy]{key}"
        assert conf.oslo_policy[key] == contract[key]["default"]
    assert conf.oslo_policy.enforce_scope is True
    assert set(policy.enforcer.rules) >= {entry["rule"] for entry in contract["rules"]}


def test_every_rule_is_project_scoped() -> None:
    base = {rule.name for rule in BASE_RULES}
    assert all(rule.scope_types == ["project"] for rule in list_rules() if rule.name not in base)
    assert ADMIN == "rule:context_is_admin"
