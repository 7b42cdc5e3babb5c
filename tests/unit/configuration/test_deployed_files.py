"""Whole files as deployment tools render them: they are read, and doctor has nothing to complain of but what has no
effect."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from oslo_config import cfg

from nova import conf
from nova.compute.reports.monitors import monitors
from nova.conf import logs, proxies
from nova.conf._drivers import driver_kind
from nova.configuration import check_libraries
from nova.configuration.sources import Sources
from nova.configuration.validation import ours, refuse
from nova.scheduler import plugins
from nova.virt.libvirt.settings import settings_of
from tests.contract.rows import needs_contract
from tests.unit.configuration.deployed import TOOLS, rendered, text_of

pytestmark = [needs_contract, pytest.mark.one_in(4)]  # one of four runs has each

#: Words of command lines -> options that daemons register for them.
OPTION_SETS = {"daemons": [*logs.CLI_OPTS], "proxies": [*logs.CLI_OPTS, *proxies.CLI_OPTS, *proxies.CLI_ONLY]}


def doctor(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "nova.manage.main", "--config-file", str(folder / "nova.conf"),
                           "doctor", "--check", "options", *words], capture_output=True, text=True, timeout=120,
                          check=False)


@pytest.mark.parametrize("tool", TOOLS)
def test_doctor_when_a_tool_rendered_the_file_then_it_warns_and_tells_each_option_without_effect(
        tmp_path: Path, tool: str) -> None:
    files = rendered(tool)
    (tmp_path / "nova.conf").write_text(text_of(files))
    done = doctor(tmp_path, "--json")
    assert done.returncode == 1, done.stdout + done.stderr
    check, = json.loads(done.stdout)["checks"]
    assert check["state"] == "warning" and "s3cret" not in done.stdout
    told = [one["option"] for one in check["details"]]
    assert len(told) == len(set(told)) and set(told) <= {f"[{section}]{name}" for section, names in files.items()
                                                         for name in names}
    assert all(one["state"] == "warning" and " " in one["reason"] for one in check["details"])
    assert all(option in check["what"] for option in told)


@pytest.mark.parametrize("options", OPTION_SETS, ids=str)
@pytest.mark.parametrize("tool", TOOLS)
def test_configuration_when_a_tool_rendered_the_file_then_every_daemon_reads_it(tmp_path: Path, tool: str, options: str
                                                                               ) -> None:
    files = rendered(tool)
    (tmp_path / "nova.conf").write_text(text_of(files))
    made = cfg.ConfigOpts()
    made.register_cli_opts(OPTION_SETS[options])
    conf.register(made)
    made(["--config-file", str(tmp_path / "nova.conf")], project="nova", default_config_dirs=[])
    refuse(made, ours(), Sources.of(made))
    check_libraries(made, thorough=True)
    plugins.check(made)
    assert driver_kind(made.compute_driver) in ("libvirt", "fake") or "compute_driver" not in files["DEFAULT"]
    assert settings_of(made, made.libvirt, made.vnc, made.compute, made.pci)
    assert len(monitors(made.compute_monitors)) == len(made.compute_monitors)


@pytest.mark.parametrize(("more", "said", "cure"), [
    ("[glance]\nverify_glance_signatures = true\n", "[glance]verify_glance_signatures (Signatures of images are not",
     "remove the option if you accept unsigned images"),
    ("[ephemeral_storage_encryption]\nenabled = true\n", "[ephemeral_storage_encryption]enabled (Local disks",
     "encrypt the file system")])
def test_doctor_when_a_value_relies_on_what_is_not_there_then_it_fails_and_says_what_to_do(
        tmp_path: Path, more: str, said: str, cure: str) -> None:
    (tmp_path / "nova.conf").write_text("[database]\nmax_retries = -1\n" + more)
    done = doctor(tmp_path)
    assert done.returncode == 2 and said in done.stdout and cure in done.stdout and "1 without effect" in done.stdout
    check, = json.loads(doctor(tmp_path, "--json").stdout)["checks"]
    states = {one["option"]: one["state"] for one in check["details"]}
    assert sorted(states.values()) == ["failed", "warning"] and states["[database]max_retries"] == "warning"
