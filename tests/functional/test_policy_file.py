"""An operator's policy file on a live cloud: its rules hold within a second, a broken or missing one changes
nothing."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.functional.backends import wait_until
from tests.functional.client import Refused
from tests.functional.cloud import Cloud, Plan
from tests.functional.daemons import TOP, environment

pytestmark = pytest.mark.in_turn(7, 10)

START = "os_compute_api:servers:start"


@pytest.fixture(scope="module")
def cloud(make_cloud) -> Cloud:
    return make_cloud(Plan(network=False)).start()


@pytest.fixture
def rules(cloud: Cloud) -> Path:
    """The policy file beside nova.conf, which is not there yet."""
    path = cloud.root / "etc" / "ctl" / "policy.yaml"
    yield path
    path.unlink(missing_ok=True)


def refused(cloud: Cloud, path: str) -> str:
    """Why a reader of the list is refused; empty when not."""
    try:
        cloud.api().get(path)
    except Refused as error:
        assert error.status == 403
        return error.message
    return ""


def test_file_when_written_broken_removed_and_emptied_then_the_last_good_rules_hold(cloud: Cloud, rules: Path) -> None:
    listing = "os_compute_api:servers:index"
    assert not refused(cloud, "/servers")
    rules.write_text(f'"{listing}": "role:admin"\n')
    wait_until("the file holds", lambda: refused(cloud, "/servers"), 5)
    assert listing in refused(cloud, "/servers")
    rules.write_text(f'"{listing}": "rule:nothing_like_it"\n')
    log = cloud.daemons["api"]
    wait_until("the file is looked at", lambda: refused(cloud, "/servers") and "cannot be used" in log.text(), 5)
    line = log.wait_log("cannot be used")
    assert str(rules) in line and "rule:nothing_like_it" in line
    assert refused(cloud, "/servers"), "the last good rules hold"
    rules.unlink()
    wait_until("it is missed", lambda: refused(cloud, "/servers") and "is missing; the rules stay" in log.text(), 5)
    assert refused(cloud, "/servers"), "rules that nobody has taken back hold"
    rules.write_text("{}\n")
    wait_until("the defaults hold again", lambda: not refused(cloud, "/servers"), 5)


def test_api_when_started_with_a_broken_file_then_it_ends_and_says_why(cloud: Cloud, rules: Path) -> None:
    api = cloud.daemons["api"]
    rules.write_text("no rules\n")
    api.kill()
    api.start()
    assert api.wait_end() == 2
    assert str(rules) in api.text() and "Traceback" not in api.text()
    rules.unlink()
    api.start().ready()


def command(cloud: Cloud, *words: str) -> tuple[int, list[str], str]:
    done = subprocess.run([sys.executable, "-W", "ignore", "-m", "nova.cmd.policy", "--config-file",
                           str(cloud.root / "etc" / "ctl" / "nova.conf"), "policy", "check", *words],
                          cwd=TOP, env=environment(), capture_output=True, text=True, timeout=60)
    return done.returncode, done.stdout.splitlines(), done.stderr


def test_command_when_a_server_is_the_target_then_its_owner_decides(cloud: Cloud) -> None:
    server = cloud.api().boot("owned", networks="none")
    words = ("--api-name", START, "--os-roles", "member", "--os-user-id", "u",
             "--target", f"instance_id={server['id']}")
    assert command(cloud, *words, "--os-tenant-id", "demo")[:2] == (0, [START])
    assert command(cloud, *words, "--os-tenant-id", "other")[:2] == (1, [])
    code, _, error = command(cloud, "--target", "instance_id=11111111-2222-4333-8444-555555555555")
    assert code == 2 and "could not be found" in error
    cloud.empty()
