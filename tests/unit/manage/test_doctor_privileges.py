"""The doctor's word on how daemons that are not root have done what root alone may."""

from __future__ import annotations

import os
import socket
import threading
from pathlib import Path

import pytest
from oslo_config import cfg

from nova import concurrency, conf
from nova.manage.doctor.finding import BAD, OK
from nova.manage.doctor.privileges import privileges
from nova.privileged.helper.serving import HelperServer
from tests.fakes.helper import settings


@pytest.fixture
def options(tmp_path: Path):
    made = conf.register(cfg.ConfigOpts())
    made([], default_config_files=[])
    for name, value in {"compute_driver": "libvirt.LibvirtDriver", "state_path": str(tmp_path),
                        "instances_path": str(tmp_path / "instances"),
                        "networks_path": str(tmp_path / "networks")}.items():
        made.set_override(name, value)
    made.set_override("socket", str(tmp_path / "helper.sock"), group="privileged")
    return made


@pytest.fixture
def helper(tmp_path: Path):
    stop = threading.Event()
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as sock:
        sock.bind(str(tmp_path / "helper.sock"))
        sock.listen(4)
        serving = concurrency.spawn(HelperServer(sock, settings(tmp_path), {os.geteuid()}).serve, stop.is_set)
        yield
        stop.set()
        serving.join(5)


def test_privileges_when_the_helper_answers_then_it_is_named(options, helper) -> None:
    found = privileges(options)
    assert found.state == OK and "accepts calls from user nova" in found.what


def test_privileges_when_the_helper_has_read_another_file_then_it_is_to_be_started_anew(options, helper) -> None:
    options.set_override("instances_path", "/elsewhere")
    found = privileges(options)
    assert (found.state, found.cure) == (BAD, "systemctl restart nova-privileged") and "instances_path" in found.what


def test_privileges_when_nobody_listens_then_it_is_told_with_a_cure(options, tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as sock:
        sock.bind(str(tmp_path / "helper.sock"))
    found = privileges(options)
    assert found.state == BAD and "Connection refused" in found.what and found.cure


@pytest.mark.parametrize(("command", "state"), [
    (b"/opt/nova/bin/python\0-s\0/opt/nova/bin/nova-compute\0--config-file\0/etc/nova/nova.conf\0", OK),
    (b"nova-network\0", OK), (b"/usr/bin/nova-api\0--log-file\0/var/log/nova/nova-compute.log\0", BAD)])
@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, whose the process is")
def test_privileges_when_daemons_run_as_root_then_they_need_no_helper(
        options, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: bytes, state: str) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))  # no sudo there
    monkeypatch.setattr("nova.privileged.choosing.is_privileged", lambda: False)
    (tmp_path / "4242").mkdir()
    (tmp_path / "4242" / "cmdline").write_bytes(command)
    (tmp_path / "4243").mkdir()  # ends just now
    found = privileges(options, tmp_path)
    assert found.state == state and ("services here run as root" in found.what) is (state == OK)


def test_privileges_when_no_daemon_here_needs_any_then_that_is_said(options) -> None:
    options.set_override("compute_driver", "fake.FakeDriver")
    options.set_override("use_neutron", True)
    assert privileges(options).state == OK
