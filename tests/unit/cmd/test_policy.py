"""nova-policy: what it prints and how it ends."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from nova.cmd import policy
from nova.policies import list_rules
from nova.policies.sample import sample

TOP = Path(__file__).resolve().parents[3]
START = "os_compute_api:servers:start"


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "nova.conf"
    path.write_text(f"[oslo_policy]\npolicy_file = {tmp_path / 'policy.yaml'}\n")
    (tmp_path / "policy.yaml").write_text("{}\n")
    return path


def run(config: Path, *words: str, **env: str) -> tuple[int, list[str], str]:
    done = subprocess.run([sys.executable, "-W", "ignore", "-m", "nova.cmd.policy", "--config-file", str(config),
                           *words], cwd=TOP, capture_output=True, text=True, timeout=60,
                          env={"PATH": "/usr/bin:/bin", "PYTHONPATH": str(TOP), **env})
    return done.returncode, done.stdout.splitlines(), done.stderr


def test_check_when_all_named_rules_pass_then_0_and_their_names(config: Path) -> None:
    code, lines, _ = run(config, "policy", "check", "--api-name", "servers:st", "--os-roles", "member,reader",
                         "--os-user-id", "u", "--os-tenant-id", "p")
    assert (code, lines) == (0, [START, "os_compute_api:servers:stop"])


def test_check_when_a_named_rule_refuses_then_1(config: Path) -> None:
    code, lines, _ = run(config, "policy", "check", "--api-name", START, OS_ROLES="reader", OS_USER_ID="u",
                         OS_PROJECT_ID="p")
    assert (code, lines) == (1, [])


def test_check_when_the_target_is_anothers_then_only_admins_pass(config: Path) -> None:
    words = ("policy", "check", "--api-name", START, "--target", "project_id=q", "user_id=v", "--os-tenant-id", "p")
    assert run(config, "--os-roles", "member", *words)[0] == 1
    assert run(config, "--os-roles", "admin", *words)[:2] == (0, [START])


def test_check_when_nothing_is_named_then_0_and_all_that_pass(config: Path) -> None:
    code, lines, _ = run(config, "policy", "check", "--os-roles", "reader", "--os-tenant-id", "p", "--os-user-id", "u")
    assert code == 0 and "os_compute_api:servers:show" in lines and START not in lines
    assert not policy.BASE & set(lines)


def test_check_when_the_operators_file_says_otherwise_then_so_it_is(config: Path) -> None:
    (config.parent / "policy.yaml").write_text(f'"{START}": "role:starter"\n')
    words = ("policy", "check", "--api-name", START, "--os-tenant-id", "p")
    assert run(config, *words, "--os-roles", "starter")[0] == 0
    assert run(config, *words, "--os-roles", "member")[0] == 1


@pytest.mark.parametrize(("words", "said"), [
    (("policy", "check", "--api-name", "nonsense"), "No rule's name contains 'nonsense'"),
    (("policy", "check", "--target", "colour=red"), "--target colour=red"),
    (("policy", "check", "--target", "project_id"), "--target project_id"),
])
def test_wrong_words_then_2_and_what_is_wrong(config: Path, words: tuple[str, ...], said: str) -> None:
    code, lines, error = run(config, *words)
    assert code == 2 and not lines and said in error and "Traceback" not in error


def test_broken_policy_file_then_2_and_its_name(config: Path) -> None:
    (config.parent / "policy.yaml").write_text("[")
    code, _, error = run(config, "policy", "check")
    assert code == 2 and str(config.parent / "policy.yaml") in error and "Traceback" not in error


def test_no_command_then_2_and_help(config: Path) -> None:
    code, lines, _ = run(config)
    assert code == 2 and lines


def test_sample_holds_every_rule_and_is_a_policy_file_without_its_marks() -> None:
    text = sample()
    assert yaml.safe_load(text) is None
    lines = [line.removeprefix("#") for line in text.splitlines() if line.startswith('#"')]
    assert yaml.safe_load("\n".join(lines)) == {rule.name: rule.check_str for rule in list_rules()}


def test_target_words_may_be_parted_by_commas() -> None:
    assert policy.targets(["project_id=a,user_id=b"]) == {"project_id": "a", "user_id": "b"}
