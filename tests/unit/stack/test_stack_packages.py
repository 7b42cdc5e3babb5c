"""What apt says, and what the operator is told of it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from stacklib import cli, packages, venvs

LOG = Path("/x/install.log")
AWAY = """\
W: Failed to fetch http://mirror.example/debian/dists/bookworm/InRelease  Temporary failure resolving 'mirror.example'
W: Some index files failed to download. They have been ignored, or old ones used instead.
E: Unable to locate package rabbitmq-server
"""


def test_install_when_the_mirror_is_away_then_that_is_said_and_not_what_came_of_it():
    error = packages.not_installed(AWAY, LOG)
    assert error.message.startswith("the package mirror does not answer: Failed to fetch http://mirror.example/")
    assert "rabbitmq-server" not in error.message and "network" in error.hint and "\n" not in str(error.message)


def test_install_when_apt_has_another_complaint_then_one_line_of_it():
    error = packages.not_installed("W: odd\nE: one thing\nE: another\n", LOG)
    assert error.message == "apt-get failed: one thing; another" and str(LOG) in error.hint


def test_install_when_no_package_can_be_fetched_then_the_mirror_is_named_with_the_first_of_them():
    words = "".join(f"E: Failed to fetch http://mirror.example/{n}.deb  Temporary failure resolving\n" for n in "abc")
    error = packages.not_installed(f"{words}E: Some files failed to download\n", LOG)
    assert error.message.endswith("/a.deb  Temporary failure resolving") and "mirror" in error.message


def test_install_when_apt_complains_without_end_then_the_first_are_said():
    error = packages.not_installed("".join(f"E: {n} is broken\n" for n in range(9)), LOG)
    assert error.message == "apt-get failed: 0 is broken; 1 is broken; 2 is broken; and 6 more"


def test_install_when_a_needless_source_is_away_too_then_the_real_fault_is_said():
    words = AWAY.replace("Unable to locate package rabbitmq-server", "dpkg returned an error")
    error = packages.not_installed(words, LOG)
    assert error.message == "apt-get failed: dpkg returned an error"


@pytest.mark.parametrize(("release", "has_module"), [
    ({"VERSION_ID": "12"}, False), ({"VERSION_ID": "13"}, True), ({}, True), ({"VERSION_ID": "24.04"}, True)], ids=str)
def test_part_when_a_release_splits_a_package_then_it_has_both_halves(monkeypatch, release, has_module):
    monkeypatch.setattr(packages.platform, "freedesktop_os_release", lambda: release)
    found = packages.of_part("hypervisor")
    assert "qemu-system-x86" in found and ("qemu-system-modules-spice" in found) == has_module
    assert packages.of_part("broker") == packages.PACKAGES["broker"]


def test_install_when_apt_ends_without_a_word_then_its_log_is_named():
    assert str(LOG) in packages.not_installed("", LOG).hint


@pytest.mark.parametrize("line", [
    "E: Could not get lock /var/lib/apt/lists/lock. It is held by process 7 (apt-get)",
    "E: Unable to lock directory /var/lib/apt/lists/",
    "E: Unable to acquire the dpkg frontend lock (/var/lib/dpkg/lock-frontend)"])  # fmt: skip
def test_apt_when_another_one_runs_then_it_is_known_by_its_words(line):
    assert packages.LOCKED.search(line)


def test_command_when_the_operators_umask_is_narrow_then_other_users_services_can_read_what_it_makes(short_path):
    before = os.umask(0o077)
    try:
        cli.main(["--state", str(short_path), "status"])
        assert os.umask(0o022) == 0o022
    finally:
        os.umask(before)


UV_SAYS = """\
Using Python 3.11.2 environment at: /opt/nova-stack/clients
error: Request failed after 3 retries
  Caused by: Failed to fetch: `https://index.example/simple/cliff/`
  Caused by: dns error: failed to lookup address information
"""


def test_environment_when_the_index_is_away_then_one_line_says_so():
    error = venvs.not_built(["/x/uv", "--no-config", "pip", "install"], UV_SAYS, LOG)
    assert error.message.startswith("the index of Python packages does not answer:")
    assert "index.example" in error.message
    assert "\n" not in error.message and "network" in error.hint


def test_environment_when_a_package_does_not_build_then_the_end_of_what_was_said():
    error = venvs.not_built(["/x/uv", "--no-config", "pip", "install"], "a\nerror: no compiler\n", LOG)
    assert error.message == "uv pip install failed:\n  a\n  error: no compiler" and "again" in error.hint


def test_fetching_when_nothing_comes_then_it_is_ended_and_the_mirror_is_named(short_path):
    log = short_path / "log"
    with log.open("ab") as output:
        assert packages.run(["sleep", "60"], output, short_path / "archives", quiet=0.05) == 100
    assert "does not answer: Unable to fetch anything" in packages.not_installed(log.read_text(), log).message


def test_command_when_it_fetches_nothing_then_it_has_all_the_time_it_needs(short_path):
    with (short_path / "log").open("ab") as output:
        assert packages.run(["sh", "-c", "sleep 0.2; exit 3"], output, quiet=0.05) == 3
