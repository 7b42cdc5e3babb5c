"""Which way a daemon has done what root alone may, and what it says when there is none."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading
from pathlib import Path
from types import SimpleNamespace

import pytest
from oslo_config import cfg

from nova import concurrency, conf, errors
from nova.privileged import choosing
from nova.privileged.helper.serving import HelperServer
from nova.privileged.helper_socket import SocketHelper
from tests.fakes.helper import settings

NETWORK = "from nova.cmd import network; raise SystemExit(network.main())"


@pytest.fixture
def options(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("PATH", str(tmp_path))  # no sudo there
    made = conf.register(cfg.ConfigOpts())
    made([], default_config_files=[])
    made.set_override("socket", str(tmp_path / "helper.sock"), group="privileged")
    made.set_override("rootwrap_config", str(tmp_path / "rootwrap.conf"))
    return made


def test_way_when_the_socket_is_there_then_it_is_taken(options, tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as sock:
        sock.bind(str(tmp_path / "helper.sock"))
        found = choosing.way(options)
    assert isinstance(found, SocketHelper) and str(tmp_path / "helper.sock") in found.name


def test_way_when_there_is_none_then_the_cause_and_the_cure_are_one_line(options, tmp_path: Path) -> None:
    with pytest.raises(errors.host.NoHelper) as found:
        choosing.way(options)
    said = found.value.message
    assert f"{tmp_path}/helper.sock does not exist, and sudo is not installed" in said
    assert "nova-privileged.service" in said and "doc/install.rst" in said and "\n" not in said


@pytest.mark.parametrize(("callers", "left"), [({os.geteuid()}, 54321), ({54322}, 0)])
def test_take_over_when_a_helper_answers_this_user_then_what_root_left_is_its_own(
        options, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, callers: set[int], left: int) -> None:
    if os.geteuid() != 0:
        pytest.skip("needs root, whose the file was")
    monkeypatch.setattr(choosing, "is_privileged", lambda: False)
    monkeypatch.setattr("nova.privileged.helper.state_calls.pwd.getpwnam",
                        lambda name: SimpleNamespace(pw_uid=54321, pw_gid=54321))
    (tmp_path / "nova-compute.lock").write_text("")
    stop = threading.Event()
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as sock:
        sock.bind(str(tmp_path / "helper.sock"))
        sock.listen(4)
        serving = concurrency.spawn(HelperServer(sock, settings(tmp_path), callers).serve, stop.is_set)
        choosing.take_over(options)
        stop.set()
        serving.join(5)
    assert (tmp_path / "nova-compute.lock").stat().st_uid == left


def test_take_over_when_there_is_no_helper_then_nothing_is_asked(options, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choosing, "is_privileged", lambda: False)
    choosing.take_over(options)


@pytest.mark.parametrize(("rootwrap", "said"), [(False, "rootwrap.conf does not exist"), (True, "")])
def test_way_when_sudo_is_there_then_rootwraps_configuration_is_asked_for(options, tmp_path: Path, rootwrap: bool,
                                                                           said: str) -> None:
    from nova.privileged import privsep

    (tmp_path / "sudo").write_text("#!/bin/sh\n")
    (tmp_path / "sudo").chmod(0o755)
    if rootwrap:
        (tmp_path / "rootwrap.conf").write_text("")
    assert privsep.can_be_started(options).endswith(said) and bool(said) is bool(privsep.can_be_started(options))


def test_daemon_when_it_is_no_root_and_has_no_helper_then_it_ends_with_one_line(tmp_path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("needs root, to become somebody else")
    (tmp_path / "nova.conf").write_text(f"[DEFAULT]\nhosts_transport_url = local://\nstate_path = {tmp_path}\n"
                                        "rootwrap_config = /nonexistent\n[privileged]\nsocket = /nonexistent.sock\n")
    tmp_path.chmod(0o755)
    for folder in (tmp_path, *tmp_path.parents[:2]):
        folder.chmod(0o755)
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", NETWORK, "--config-file", str(tmp_path / "nova.conf")],
                          capture_output=True, text=True, timeout=90, check=False, user=65534, group=65534,
                          extra_groups=[])
    lines = [line for line in (done.stdout + done.stderr).splitlines() if "cannot start" in line]
    assert done.returncode == 1 and len(lines) == 1 and "Traceback" not in done.stderr, done.stderr
    assert "Privileged operations are not possible: /nonexistent.sock does not exist" in lines[0]
