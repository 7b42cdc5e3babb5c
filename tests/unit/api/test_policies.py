"""Rules in force: defaults, an operator's file, old defaults, tokens of another scope."""

from __future__ import annotations

import pathlib
from typing import Any

import pytest

from nova.context import RequestContext
from nova.policies import Policy
from nova.policies.enforcer import NotAllowed
from tests.fakes.api import configuration

SHOW, STOP, HOST = "os_compute_api:servers:show", "os_compute_api:servers:stop", "os_compute_api:os-hypervisors:list"


def caller(*roles: str, **fields: Any) -> RequestContext:
    return RequestContext(**{"request_id": "req-1", "user_id": "u", "project_id": "p", "roles": roles, **fields})


@pytest.mark.parametrize(("roles", "rule", "project", "allowed"), [
    (("reader",), SHOW, "p", True), (("reader",), SHOW, "q", False), (("reader",), STOP, "p", False),
    (("member",), STOP, "p", True), (("member",), STOP, "q", False), (("admin",), STOP, "q", True),
    (("member",), HOST, "p", False), (("admin",), HOST, "p", True), ((), SHOW, "p", False),
])
def test_default_rule_by_role_and_project(roles: tuple[str, ...], rule: str, project: str, allowed: bool) -> None:
    policy = Policy(configuration())
    for _ in range(2):  # the second answer is a kept one
        assert policy.allows(caller(*roles), rule, {"project_id": project, "user_id": "u"}) is allowed


def test_refusal_names_the_rule() -> None:
    with pytest.raises(NotAllowed, match=HOST):
        Policy(configuration()).authorize(caller("member"), HOST, {"project_id": "p"})


def test_system_and_domain_tokens_are_refused() -> None:
    policy = Policy(configuration())
    assert not policy.allows(caller("admin", project_id=None, system_scope="all"), HOST, {})
    assert not policy.allows(caller("admin", project_id=None, domain_id="d"), HOST, {})


def with_file(tmp_path: pathlib.Path, text: str, **options: Any) -> Policy:
    path = tmp_path / "policy.yaml"
    path.write_text(text)
    conf = configuration()
    policy = Policy(conf)
    for name, value in {"policy_file": str(path), **options}.items():
        conf.set_override(name, value, group="oslo_policy")
    return Policy(conf) if policy else policy


def test_operators_file_overrides_a_rule(tmp_path: pathlib.Path) -> None:
    policy = with_file(tmp_path, f'"{STOP}": "role:stopper"\n')
    assert policy.allows(caller("stopper"), STOP, {"project_id": "q"})
    assert not policy.allows(caller("admin"), STOP, {"project_id": "q"})
    assert policy.allows(caller("reader"), SHOW, {"project_id": "p"})


def test_operators_file_with_an_old_name_is_honoured(tmp_path: pathlib.Path) -> None:
    policy = with_file(tmp_path, '"os_compute_api:os-attach-interfaces": "role:plumber"\n')
    target = {"project_id": "p", "user_id": "u"}
    assert policy.allows(caller("plumber"), "os_compute_api:os-attach-interfaces:list", target)


def test_changed_file_is_seen_within_a_second(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    policy = with_file(tmp_path, f'"{STOP}": "role:stopper"\n')
    assert not policy.allows(caller("member"), STOP, {"project_id": "p"})
    path = tmp_path / "policy.yaml"
    path.write_text(f'"{STOP}": "role:member"\n# longer\n')
    import os
    os.utime(path, (path.stat().st_atime, path.stat().st_mtime + 10))
    policy._fresh_until = 0.0
    assert policy.allows(caller("member"), STOP, {"project_id": "p"})


def test_old_defaults_hold_when_the_new_are_switched_off(tmp_path: pathlib.Path) -> None:
    policy = with_file(tmp_path, "", enforce_new_defaults=False)
    owner = caller("whatever")
    assert policy.allows(owner, "os_compute_api:os-attach-interfaces:list", {"project_id": "p", "user_id": "u"})
    assert not policy.allows(owner, "os_compute_api:os-attach-interfaces:list", {"project_id": "q", "user_id": "u"})
