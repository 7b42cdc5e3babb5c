from __future__ import annotations

import os
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from nova.manage.secret_files import readers
from stacklib import systemd
from stacklib.control import Control
from stacklib.errors import StackError
from stacklib.layout import Choices, Layout
from stacklib.releases import Releases
from stacklib.secrets import Secrets
from stacklib.spec import Daemon, Probe
from stacklib.stack import Stack

SHIPPED = sorted(systemd.SHIPPED.glob("*.service"))
SYSTEMCTL = """#!/bin/sh
echo "$@" >> "$CALLS"
case "$1" in
  is-active) test ! -e "$INACTIVE" ;;
  show) printf 'ActiveState=active\\nMainPID=7\\nNRestarts=2\\nActiveEnterTimestampMonotonic=0\\n' ;;
  start|restart) test ! -e "$HANG" || exec sleep 60; test ! -e "$FAIL" ;;
esac
"""


@pytest.mark.parametrize("unit", SHIPPED, ids=lambda path: path.stem)
def test_shipped_unit_then_it_waits_for_readiness_and_starts_its_own_program(unit):
    lines = unit.read_text().splitlines()
    assert "Type=notify" in lines and "Restart=always" in lines
    assert any(line.startswith(f"ExecStart=/usr/bin/{unit.stem} --config-file /etc/nova/nova.conf") for line in lines)
    user = readers.user_of(unit.stem)
    assert (f"User={user}" in lines) is (unit.stem != "nova-privileged") and "NoNewPrivileges=true" in lines
    assert ("SupplementaryGroups=nova" in lines) is (user not in ("nova", "nova-privileged")), "it reads nova.conf"
    shares = unit.stem in ("nova-compute", "nova-network", "nova-privileged")  # files that QEMU and dnsmasq read
    assert ("UMask=0077" in lines) is not shares


#: A secret -> the daemons that need it. A daemon that faces the internet is not to be all others.
#: (The helper gives a host's secret to its daemons' user, should it be root's.)
HOSTS = {"nova-compute", "nova-network", "nova-api", "nova-api-metadata", "nova-privileged"}
MAY_READ = {
    "/etc/nova/nova-conductor.conf": {"nova-conductor"},
    "/etc/nova/nova-imageproxy.conf": {"nova-imageproxy"},
    "/var/lib/nova/host_secret": HOSTS,
    "/var/lib/nova/host_secret.next": HOSTS,
    "/var/lib/nova/host_token": HOSTS,
    "/var/lib/nova/CA": {"nova-cert"},
    "/var/lib/nova/keys": {"nova-cert"},
    "/var/lib/nova/buckets": {"nova-objectstore"},
}  # fmt: skip


@pytest.mark.parametrize("unit", SHIPPED, ids=lambda path: path.stem)
def test_shipped_unit_then_the_secrets_of_other_daemons_are_out_of_its_reach(unit):
    [hidden] = [line.partition("=")[2].split() for line in unit.read_text().splitlines()
                if line.startswith("InaccessiblePaths=")]  # fmt: skip
    assert set(hidden) == {f"-{path}" for path, readers in MAY_READ.items() if unit.stem not in readers}


#: Exposure by `systemd-analyze security`, of 10. What works on guests and networks asks libvirt and the host's other
#: daemons, and the helper is root.
WORST, WORST_OF = 2.0, {"nova-compute": 3.0, "nova-network": 3.0, "nova-privileged": 6.5}


@pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="systemd is not installed")
@pytest.mark.parametrize("unit", SHIPPED, ids=lambda path: path.stem)
def test_shipped_unit_then_it_can_do_no_more_than_its_work(unit):
    worst = WORST_OF.get(unit.stem, WORST)
    result = subprocess.run(
        ["systemd-analyze", "security", "--offline=true", f"--threshold={round(worst * 10)}", str(unit)],
        capture_output=True, text=True, check=False)  # fmt: skip
    assert result.returncode == 0, result.stdout.splitlines()[-1:] + [result.stderr]


def test_shipped_helpers_unit_then_it_leaves_what_the_sandbox_of_image_tools_takes():
    """Without one of these bwrap or setpriv fails, and nova-compute does not start."""
    taken = {f"CAP_{name}" for name in ("SYS_ADMIN", "SETUID", "SETGID", "SETPCAP", "NET_ADMIN", "DAC_OVERRIDE")}
    lines = (systemd.SHIPPED / "nova-privileged.service").read_text().splitlines()
    settings = [line.partition("=")[::2] for line in lines if not line.startswith("#")]
    bounds = [value for name, value in settings if name == "CapabilityBoundingSet"]
    assert taken <= {word for value in bounds for word in value.split()}
    filters = [value for name, value in settings if name == "SystemCallFilter"]
    assert filters and all(value.startswith("~") and not {"@mount", "@privileged"} & set(value[1:].split())
                           for value in filters)
    assert not {"RestrictNamespaces", "RestrictSUIDSGID", "User"} & set(dict(settings))


@pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="systemd is not installed")
def test_shipped_units_then_systemd_finds_no_fault(tmp_path):
    for unit in (*SHIPPED, *systemd.SHIPPED.glob("*.socket")):
        program = f"/usr/bin/{unit.stem} "
        (tmp_path / unit.name).write_text(unit.read_text().replace(program, "/bin/true "))
    units = [str(path) for path in tmp_path.iterdir()]
    result = subprocess.run(["systemd-analyze", "verify", *units], capture_output=True, text=True, check=False)
    assert (result.returncode, result.stderr) == (0, "")


@pytest.fixture
def calls(tmp_path, monkeypatch):
    program = tmp_path / "bin" / "systemctl"
    program.parent.mkdir()
    program.write_text(SYSTEMCTL)
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
    monkeypatch.setenv("CALLS", str(tmp_path / "calls"))
    monkeypatch.setenv("FAIL", str(tmp_path / "fail"))
    monkeypatch.setenv("INACTIVE", str(tmp_path / "inactive"))
    monkeypatch.setenv("HANG", str(tmp_path / "hang"))
    return lambda: (tmp_path / "calls").read_text().splitlines()


@pytest.fixture
def units(short_path, tmp_path, monkeypatch) -> systemd.Units:
    monkeypatch.setenv("NOVA_STACK_VENVS", str(tmp_path / "venvs"))
    layout = Layout(short_path, Choices())
    stack = Stack(layout, Secrets(short_path / "secrets.json"), Control(layout))
    return systemd.Units(stack, tmp_path / "units")


def daemon(word: str = "a") -> Daemon:
    return Daemon(name="nova-scheduler", argv=("/v/nova-scheduler", word), probe=Probe("notify")).stamped()


def changes(calls: list[str]) -> list[str]:
    return [verb for verb in (line.split()[0] for line in calls) if verb not in ("is-active", "reset-failed")]


def test_units_when_one_waits_after_a_failure_then_it_is_started_at_once(units, calls, tmp_path):
    units.start(daemon())
    (tmp_path / "inactive").touch()
    units.start(daemon())
    assert changes(calls()) == ["daemon-reload", "restart", "restart"]
    assert calls()[-2:] == ["reset-failed nova-scheduler.service", "restart nova-scheduler.service"]


def test_units_when_started_twice_then_installed_once_and_a_change_restarts(units, calls):
    assert units.start(daemon()) == "started nova-scheduler"
    dropin = units.units / "nova-scheduler.service.d" / "stack.conf"
    assert "ExecStart=\nExecStart=/v/nova-scheduler a\n" in dropin.read_text()
    assert f"ReadWritePaths={units.stack.layout.state}" in dropin.read_text()
    assert units.start(daemon()) == "running"
    units.start(daemon("b"))
    assert changes(calls()) == ["daemon-reload", "restart", "start", "daemon-reload", "restart"]
    assert units.rows()[0][:3] == ("nova-scheduler", "-", "active")
    units.remove()
    assert list(units.units.iterdir()) == []


@pytest.mark.parametrize(("name", "root"), [("nova-compute", True), ("nova-network", True), ("nova-scheduler", False)])
def test_dropin_when_the_daemon_works_on_the_machine_then_it_is_root(name, root):
    made = Daemon(name=f"{name}-host1", argv=(f"/v/bin/{name}",), probe=Probe("notify"))
    text = systemd.dropin(made, Path("/state"))
    assert ("\nUser=\n" in text) is root and text.count("[Service]") == 1


@pytest.mark.parametrize(("unit", "user"), [("User=nova\n", "nova"), ("", "nova-scheduler"), (None, "nova-scheduler")])
def test_user_of_a_program_when_a_release_before_ran_it_as_another_then_it_is_that_ones(units, monkeypatch, unit, user):
    monkeypatch.setattr(systemd, "manages", lambda layout: True)
    releases = Releases(units.stack.layout.venvs)
    (releases.venvs / "nova-1").mkdir(parents=True)
    releases.activate("nova-1")
    if unit is not None:
        releases.unit("nova-scheduler").parent.mkdir(parents=True)
        releases.unit("nova-scheduler").write_text(f"[Service]\n{unit}Group=nova\n")
    assert systemd.user_of(units.stack, "nova-scheduler") == user


def test_units_when_the_release_brings_its_own_then_that_is_installed_else_the_checkouts_without_its_watchdog(
        units, calls):
    unit = units.units / "nova-scheduler.service"
    dropin = units.units / "nova-scheduler.service.d" / "stack.conf"
    units.start(daemon())
    assert unit.read_text() == (systemd.SHIPPED / unit.name).read_text()
    assert "WatchdogSec=0\n" in dropin.read_text()
    own = Releases(units.stack.layout.venvs).unit("nova-scheduler")
    own.parent.mkdir(parents=True)
    own.write_text("[Service]\n")
    assert units.start(daemon()) == "started nova-scheduler"
    assert unit.read_text() == "[Service]\n" and "WatchdogSec" not in dropin.read_text()


def test_units_when_one_does_not_start_then_the_error_names_it_and_it_is_tried_again(units, calls, tmp_path):
    (tmp_path / "fail").touch()
    with pytest.raises(StackError, match="nova-scheduler does not start"):
        units.start(daemon())
    (tmp_path / "fail").unlink()
    assert units.start(daemon()) == "started nova-scheduler"


def test_units_when_one_is_not_ready_in_time_then_the_error_says_so_and_it_is_tried_again(units, calls, tmp_path):
    (tmp_path / "hang").touch()
    slow = replace(daemon(), start_seconds=1)
    with pytest.raises(StackError, match="nova-scheduler is not ready after 1 s; the end of its log"):
        units.start(slow)
    (tmp_path / "hang").unlink()
    assert units.start(slow) == "started nova-scheduler"


def test_unit_files_then_one_for_each_control_daemon_and_compute():
    assert {path.stem for path in SHIPPED} >= {
        f"nova-{n}" for n in ("api", "placement-api", "conductor", "scheduler", "network", "compute")
    }
    assert Path(systemd.SHIPPED).is_dir()
