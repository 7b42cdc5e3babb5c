"""`bin/stack upgrade` and the way back: what comes first, what is refused, and where it goes on."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from stacklib import nova, packages, systemd, upgrade
from stacklib.errors import StackError
from stacklib.layout import Choices, Layout
from stacklib.nova import FAILURE, WARNING, Found
from stacklib.releases import Releases
from stacklib.spec import Daemon
from stacklib.stack import Stack
from stacklib.venvs import Builder

UPGRADE_CHECK = nova.upgrade_check
WELL = Found("Policy", 0, None)
CONTROL = {"nova-scheduler", "nova-network", "nova-imageproxy", "nova-consoleauth", "nova-novncproxy",
           "nova-xvpvncproxy", "nova-spicehtml5proxy", "nova-serialproxy"}


class Keeper:
    """In the supervisor's place: runs what it is told to, and notes it; a daemon in ``ails`` does not become ready."""

    def __init__(self) -> None:
        self.runs: dict[str, str] = {}
        self.started: list[str] = []
        self.ails = ""
        self.here = True

    def running(self) -> bool:
        return self.here

    def start(self, daemon: Daemon) -> str:
        if daemon.name == self.ails:
            raise StackError(f"{daemon.name} is not ready after 90 s", "run `bin/stack up` again")
        if self.runs.get(daemon.name) == daemon.fingerprint:
            return "running"
        self.runs[daemon.name] = daemon.fingerprint
        self.started.append(daemon.name)
        return f"started {daemon.name}"


class Cloud:
    """A stack of the release "nova-1" that runs, under the eyes of nova-status, and a checkout of "nova-2"."""

    def __init__(self, layout: Layout, keeper: Keeper) -> None:
        self.layout, self.keeper = layout, keeper
        self.releases = Releases(layout.venvs)
        self.done: list[str] = []
        self.found = [[WELL]]

    def make(self, name: str) -> str:
        info = self.layout.venvs / name / "lib/python3.11/site-packages" / f"nova_iaas-0.{name[-1]}.0.dist-info"
        info.mkdir(parents=True, exist_ok=True)
        (self.layout.venvs / name / ".stamp").write_text(name)
        return name

    def check(self, _stack: Stack, _venv: str) -> list[Found]:
        self.done.append("check")
        return self.found.pop(0) if len(self.found) > 1 else self.found[0]

    def upgrade(self, back: bool = False) -> list[str]:
        """The daemons that were restarted, in their order."""
        self.keeper.started.clear()
        upgrade.upgrade(self.layout, back)
        return list(self.keeper.started)


@pytest.fixture
def cloud(short_path: Path, tmp_path, secrets, monkeypatch) -> Cloud:
    monkeypatch.setenv("NOVA_STACK_VENVS", str(tmp_path / "venvs"))
    layout, keeper = Layout(short_path, Choices(driver="fake", computes=2)), Keeper()
    made = Cloud(layout, keeper)
    monkeypatch.setattr(systemd, "manages", lambda layout: False)
    monkeypatch.setattr(upgrade, "stack_of", lambda layout: Stack(layout, secrets, keeper))  # type: ignore[arg-type]
    monkeypatch.setattr(packages, "install", lambda parts, log: "nothing to install")
    monkeypatch.setattr(Builder, "release", lambda self: (made.make("nova-2"), "updated the package"))
    monkeypatch.setattr(nova, "upgrade_check", made.check)
    monkeypatch.setattr(nova, "prepare_databases", lambda stack, venv: made.done.append(f"tables of {venv}") or "made")
    monkeypatch.setattr(nova, "write_files",
                        lambda _stack, **_: made.done.append(f"files, {made.releases.active} is active"))  # fmt: skip
    made.releases.activate(made.make("nova-1"))
    for daemon in nova.upgrade_order(Stack(layout, secrets, keeper)):  # type: ignore[arg-type]
        keeper.start(daemon)
    return made


def in_order(names: list[str]) -> bool:
    """Conductors, other control daemons, APIs, hosts."""
    return (names[0] == "nova-conductor" and CONTROL > set(names[1:-4]) >= CONTROL - {"nova-xvpvncproxy",
            "nova-spicehtml5proxy", "nova-novncproxy", "nova-serialproxy"}
            and names[-4:] == ["nova-placement-api", "nova-api", "nova-compute-fake1", "nova-compute-fake2"])


def test_upgrade_then_daemons_restart_in_the_documented_order_and_back_in_the_opposite_one(cloud, capsys):
    forward = cloud.upgrade()
    assert in_order(forward), forward
    assert cloud.done == ["check", "tables of nova-2", "files, nova-2 is active"]
    said = capsys.readouterr().out
    assert "nova-conductor       ready (" in said
    assert "Release 0.2.0 (nova-2) runs, after " in said and "; before: 0.1.0 (nova-1). `bin/stack" in said
    assert "upgrade --back` goes back" in said
    cloud.done.clear()
    assert cloud.upgrade(back=True) == forward[::-1]
    assert cloud.done == ["files, nova-1 is active"], "tables stay as they are"
    assert "Went back: release 0.1.0 (nova-1) runs" in capsys.readouterr().out
    assert cloud.upgrade() == forward


def test_upgrade_when_nothing_is_new_then_it_says_so_and_restarts_nothing(cloud, capsys):
    cloud.upgrade()
    assert cloud.upgrade() == []
    assert "Nothing to do: all of nova runs release 0.2.0 (nova-2)." in capsys.readouterr().out


@pytest.mark.parametrize("failed", [["Older than N-1 computes"], ["Schemas", "Enrolled hosts"]])
def test_upgrade_when_nova_status_refuses_then_it_says_why_and_nothing_is_changed(cloud, failed):
    cloud.found = [[WELL, *(Found(name, FAILURE, f"{name} is wrong.") for name in failed)]]
    with pytest.raises(StackError, match="refuses the upgrade; nothing was changed") as caught:
        cloud.upgrade()
    assert all(f"{name} is wrong." in caught.value.message for name in failed)
    assert (cloud.done, cloud.keeper.started, cloud.releases.active) == (["check"], [], "nova-1")


def test_upgrade_when_the_tables_alone_are_behind_then_they_are_made_and_it_is_asked_again(cloud):
    behind, refused = [Found("Schemas", FAILURE, "behind")], [Found("Enrolled hosts", FAILURE, "Not enrolled: h1.")]
    cloud.found = [behind, refused]
    with pytest.raises(StackError, match="only the tables were migrated.*\n.*Not enrolled: h1"):
        cloud.upgrade()
    assert (cloud.done, cloud.releases.active) == (["check", "tables of nova-2", "check"], "nova-1")
    cloud.found = [[WELL]]
    assert in_order(cloud.upgrade())


def test_upgrade_when_nova_status_warns_then_that_is_shown_and_it_goes_on(cloud, capsys):
    cloud.found = [[Found("Options", WARNING, "[a]b is not read.")]]
    assert in_order(cloud.upgrade())
    assert "warning: Options: [a]b is not read." in capsys.readouterr().out


def test_upgrade_when_a_daemon_is_not_ready_then_the_error_names_the_way_back_and_a_second_one_goes_on(cloud):
    cloud.keeper.ails = "nova-placement-api"
    with pytest.raises(StackError, match="nova-placement-api is not ready") as caught:
        cloud.upgrade()
    assert "upgrade --back` goes back" in caught.value.hint
    begun = list(cloud.keeper.started)
    assert "nova-conductor" in begun and "nova-api" not in begun
    cloud.keeper.ails = ""
    rest = cloud.upgrade()
    assert rest[:2] == ["nova-placement-api", "nova-api"] and in_order(begun + rest)


def test_back_when_only_some_are_new_then_these_alone_are_restarted(cloud):
    cloud.keeper.ails = "nova-placement-api"
    with pytest.raises(StackError):
        cloud.upgrade()
    begun, cloud.keeper.ails = list(cloud.keeper.started), ""
    assert cloud.upgrade(back=True) == begun[::-1]


def test_back_when_it_was_interrupted_then_a_second_one_goes_on(cloud):
    forward = cloud.upgrade()
    cloud.keeper.ails = "nova-api"
    with pytest.raises(StackError) as caught:
        cloud.upgrade(back=True)
    assert "upgrade --back` continues where it stopped" in caught.value.hint
    cloud.keeper.ails, begun = "", list(cloud.keeper.started)
    assert begun + cloud.upgrade(back=True) == forward[::-1]


def test_back_when_there_is_no_previous_release_then_refused_in_words(cloud):
    for _ in range(2):
        with pytest.raises(StackError, match="there is no release to go back to"):
            cloud.upgrade(back=True)
        cloud.upgrade()
        cloud.upgrade(back=True)
    assert cloud.releases.active == "nova-1"


def test_upgrade_when_the_stack_does_not_run_then_refused(cloud):
    cloud.keeper.here = False
    with pytest.raises(StackError, match="is not running"):
        cloud.upgrade()
    assert cloud.done == []


class AsOurselves(Stack):
    """Runs commands as the user of the tests, who need not be root."""

    def command(self, name, argv, env=None, user=None, seconds=300.0, fine=(0,)):
        return super().command(name, argv, env, None, seconds, fine)


@pytest.fixture
def asked(cloud, secrets):
    """nova-status of an environment is this script."""

    def ask(script: str) -> list[Found]:
        program = cloud.layout.venvs / "nova-2" / "bin" / "nova-status"
        program.parent.mkdir(parents=True, exist_ok=True)
        program.write_text(f"#!/bin/sh\n{script}\n")
        program.chmod(0o755)
        return UPGRADE_CHECK(AsOurselves(cloud.layout, secrets, cloud.keeper), "nova-2")

    return ask


@pytest.mark.parametrize("result", [0, WARNING, FAILURE])
def test_nova_status_then_what_it_found_is_read_beside_what_it_logs(asked, result):
    said = json.dumps({"name": "x", "checks": [{"check": "Options", "result": result, "details": None}]})
    assert asked(f"echo 'a warning' >&2; echo '{said}'; exit {result}") == [Found("Options", result, None)]


@pytest.mark.parametrize(("script", "words"), [
    ("echo 'nova-status: The database does not answer.'; exit 255", "failed with 255.*\n.*does not answer"),
    ("echo 'KeyError: x'; exit 1", "nova-status failed.*\n.*KeyError: x")])
def test_nova_status_when_it_could_not_look_then_that_is_not_taken_for_a_warning(asked, script, words):
    with pytest.raises(StackError, match=words):
        asked(script)
