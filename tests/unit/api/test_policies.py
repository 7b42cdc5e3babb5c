"""Rules in force: defaults, an operator's file, old defaults, tokens of another scope."""

from __future__ import annotations

import logging
import os
import pathlib
import shutil
from types import SimpleNamespace
from typing import Any

import pytest
from oslo_config import cfg

from nova import errors
from nova.context import RequestContext
from nova.policies import Policy, enforcer
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
    with pytest.raises(errors.api.PolicyNotAllowed, match=HOST):
        Policy(configuration()).authorize(caller("member"), HOST, {"project_id": "p"})


def test_system_and_domain_tokens_are_refused() -> None:
    policy = Policy(configuration())
    assert not policy.allows(caller("admin", project_id=None, system_scope="all"), HOST, {})
    assert not policy.allows(caller("admin", project_id=None, domain_id="d"), HOST, {})


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """The policy's; it stands at ``now``."""
    made = SimpleNamespace(now=0.0)
    monkeypatch.setattr(enforcer, "time", SimpleNamespace(monotonic=lambda: made.now))
    return made


def with_file(tmp_path: pathlib.Path, text: str, **options: Any) -> Policy:
    path = tmp_path / "policy.yaml"
    path.write_text(text)
    conf = configuration()
    policy = Policy(conf)
    for name, value in {"policy_file": str(path), **options}.items():
        conf.set_override(name, value, group="oslo_policy")
    return Policy(conf) if policy else policy


def test_decision_for_one_scope_is_not_another_ones(tmp_path: pathlib.Path) -> None:
    policy = with_file(tmp_path, f'"{HOST}": "system_scope:all"\n', enforce_scope=False)
    assert policy.allows(caller("admin", project_id=None, system_scope="all"), HOST, {})
    assert not policy.allows(caller("admin", project_id=None, domain_id="d"), HOST, {})


def test_decision_is_asked_for_anew_after_a_second(monkeypatch: pytest.MonkeyPatch, clock: SimpleNamespace) -> None:
    """A rule may ask a server (``http:``), whose answer is not ours to keep."""
    policy, answers = Policy(configuration()), [True, False]
    monkeypatch.setitem(policy.enforcer.rules, HOST, lambda *_: answers.pop(0))
    assert [policy.allows(caller("admin"), HOST, {}) for _ in range(2)] == [True, True]
    clock.now += 1.0
    assert not policy.allows(caller("admin"), HOST, {})


def test_operators_file_overrides_a_rule(tmp_path: pathlib.Path) -> None:
    policy = with_file(tmp_path, f'"{STOP}": "role:stopper"\n')
    assert policy.allows(caller("stopper"), STOP, {"project_id": "q"})
    assert not policy.allows(caller("admin"), STOP, {"project_id": "q"})
    assert policy.allows(caller("reader"), SHOW, {"project_id": "p"})


def test_operators_file_with_an_old_name_is_honoured(tmp_path: pathlib.Path) -> None:
    policy = with_file(tmp_path, '"os_compute_api:os-attach-interfaces": "role:plumber"\n')
    target = {"project_id": "p", "user_id": "u"}
    assert policy.allows(caller("plumber"), "os_compute_api:os-attach-interfaces:list", target)


def test_changed_file_is_seen_within_a_second(tmp_path: pathlib.Path, clock: SimpleNamespace) -> None:
    policy = with_file(tmp_path, f'"{STOP}": "role:stopper"\n')
    assert not policy.allows(caller("member"), STOP, {"project_id": "p"})
    path = tmp_path / "policy.yaml"
    path.write_text(f'"{STOP}": "role:member"\n# longer\n')
    os.utime(path, (path.stat().st_atime, path.stat().st_mtime + 10))
    clock.now += 1.0
    assert policy.allows(caller("member"), STOP, {"project_id": "p"})


def test_old_defaults_hold_when_the_new_are_switched_off(tmp_path: pathlib.Path) -> None:
    policy = with_file(tmp_path, "", enforce_new_defaults=False)
    owner = caller("whatever")
    assert policy.allows(owner, "os_compute_api:os-attach-interfaces:list", {"project_id": "p", "user_id": "u"})
    assert not policy.allows(owner, "os_compute_api:os-attach-interfaces:list", {"project_id": "q", "user_id": "u"})


def test_old_base_rule_in_an_operators_file_is_honoured(tmp_path: pathlib.Path) -> None:
    policy = with_file(tmp_path, '"context_is_admin": "role:cloud_admin"\n')
    assert policy.is_admin(caller("cloud_admin")) and not policy.is_admin(caller("admin"))
    assert policy.allows(caller("cloud_admin"), HOST, {"project_id": "p"})


def test_file_in_a_policy_folder_stands_above_the_main_one_and_is_seen_when_it_comes(
        tmp_path: pathlib.Path, clock: SimpleNamespace) -> None:
    folder = tmp_path / "policy.d"
    folder.mkdir()
    policy = with_file(tmp_path, f'"{STOP}": "role:one"\n', policy_dirs=[str(folder)])
    assert policy.allows(caller("one"), STOP, {"project_id": "p"})
    (folder / "50-stop.yaml").write_text(f'"{STOP}": "role:two"\n')
    clock.now += 1.0
    assert policy.allows(caller("two"), STOP, {"project_id": "p"})
    assert not policy.allows(caller("one"), STOP, {"project_id": "p"})
    (folder / "50-stop.yaml").unlink()
    clock.now += 1.0
    assert policy.allows(caller("one"), STOP, {"project_id": "p"})


def errors_in(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.levelno >= logging.ERROR]


def test_main_file_when_it_disappears_then_the_rules_stay_and_one_error_says_so_until_it_is_back(
        tmp_path: pathlib.Path, clock: SimpleNamespace, caplog: pytest.LogCaptureFixture) -> None:
    policy = with_file(tmp_path, f'"{STOP}": "role:stopper"\n')
    (tmp_path / "policy.yaml").unlink()
    for _ in range(3):
        clock.now += 1.0
        assert not policy.allows(caller("member"), STOP, {"project_id": "p"})
        assert policy.allows(caller("stopper"), STOP, {"project_id": "p"})
    assert len(errors_in(caplog)) == 1 and f"{tmp_path}/policy.yaml is missing; the rules stay" in errors_in(caplog)[0]
    (tmp_path / "policy.yaml").write_text(f'"{STOP}": "role:other"\n')
    clock.now += 1.0
    assert policy.allows(caller("other"), STOP, {"project_id": "p"})
    assert not policy.allows(caller("stopper"), STOP, {"project_id": "p"})


def test_folder_when_it_disappears_then_the_rules_stay(
        tmp_path: pathlib.Path, clock: SimpleNamespace, caplog: pytest.LogCaptureFixture) -> None:
    folder = tmp_path / "policy.d"
    folder.mkdir()
    (folder / "stop.yaml").write_text(f'"{STOP}": "role:stopper"\n')
    policy = with_file(tmp_path, "{}\n", policy_dirs=[str(folder)])
    shutil.rmtree(folder)
    clock.now += 1.0
    assert not policy.allows(caller("member"), STOP, {"project_id": "p"}) and len(errors_in(caplog)) == 1


@pytest.mark.parametrize("line", [
    "policy_file = {}/nosuch.yaml", "policy_file = nosuch.yaml", "policy_dirs = {}/nosuch",
    "policy_dirs = {0}\npolicy_dirs = {0}/nosuch"])
def test_start_when_a_configured_file_is_missing_then_it_is_refused_and_the_option_named(
        tmp_path: pathlib.Path, line: str) -> None:
    (tmp_path / "nova.conf").write_text(f"[oslo_policy]\n{line.format(tmp_path)}\n")
    conf = cfg.ConfigOpts()
    conf(["--config-file", str(tmp_path / "nova.conf")], project="nova")
    with pytest.raises(errors.api.PolicyMissingFile, match=r"\[oslo_policy\]policy_(file|dirs) names") as caught:
        Policy(conf)
    assert "nosuch" not in caught.value.message and errors.config.exit_status(caught.value) == 2


def test_start_when_the_files_that_are_named_by_default_are_missing_then_the_defaults_hold(
        tmp_path: pathlib.Path) -> None:
    (tmp_path / "nova.conf").write_text("[oslo_policy]\nenforce_new_defaults = true\n")
    conf = cfg.ConfigOpts()
    conf(["--config-file", str(tmp_path / "nova.conf")], project="nova")
    assert Policy(conf).allows(caller("member"), STOP, {"project_id": "p"})


BROKEN = [
    ("a: [", "policy.yaml is not a valid policy file"),
    ("just words", "must contain lines"),
    (f'"{STOP}": 5', "must be a text"),
    (f'"{STOP}": "role:a role:b ("', "cannot be parsed"),
    (f'"{STOP}": "rule:project_member_or_admn"', 'rule:project_member_or_admn.*"project_member_or_admin" is a similar'),
    (f'"{STOP}": "rule:{SHOW} or role:a"\n"{SHOW}": "rule:{STOP}"', "refers to itself"),
    ('"context_is_admin": "not rule:project_member_or_admin"', "refers to itself"),  # whose default names it
]


@pytest.mark.parametrize(("text", "words"), BROKEN)
def test_broken_file_at_the_start_is_refused_with_its_name_and_reason(tmp_path: pathlib.Path, text: str,
                                                                      words: str) -> None:
    with pytest.raises(errors.api.PolicyBadFile, match=words) as refused:
        with_file(tmp_path, text)
    assert str(tmp_path / "policy.yaml") in refused.value.message


@pytest.mark.parametrize(("text", "words"), BROKEN)
def test_broken_file_later_is_logged_once_and_the_rules_stay(tmp_path: pathlib.Path, text: str, words: str,
                                                             caplog: pytest.LogCaptureFixture,
                                                             clock: SimpleNamespace) -> None:
    policy = with_file(tmp_path, f'"{STOP}": "role:stopper"\n')
    (tmp_path / "policy.yaml").write_text(text)
    for _ in range(3):
        clock.now += 1.0
        assert policy.allows(caller("stopper"), STOP, {"project_id": "p"})
        assert not policy.allows(caller("member"), STOP, {"project_id": "p"})
    assert [record.levelno for record in caplog.records if "cannot be used" in record.message] == [logging.ERROR]
    (tmp_path / "policy.yaml").write_text(f'"{STOP}": "role:mended"\n')
    clock.now += 1.0
    assert policy.allows(caller("mended"), STOP, {"project_id": "p"})


def test_unknown_rule_in_a_file_is_warned_of_with_what_may_be_meant(tmp_path: pathlib.Path,
                                                                    caplog: pytest.LogCaptureFixture) -> None:
    with_file(tmp_path, '"os_compute_api:servers:strt": "role:a"\n"helper": "role:b"\n"' + STOP + '": "rule:helper"\n')
    warnings = [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]
    (warning,) = [text for text in warnings if "has no effect" in text]
    assert "os_compute_api:servers:strt" in warning and '"os_compute_api:servers:start" is a similar rule' in warning


def test_scope_when_not_enforced_then_a_system_token_is_judged_by_its_roles(tmp_path: pathlib.Path) -> None:
    policy = with_file(tmp_path, "", enforce_scope=False)
    assert policy.allows(caller("admin", project_id=None, system_scope="all"), HOST, {})
    assert not policy.allows(caller("reader", project_id=None, system_scope="all"), HOST, {})
