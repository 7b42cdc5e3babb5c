"""Mounts as the kernel lists them, and where mount(8) and umount(8) run."""

from __future__ import annotations

from typing import Any

import pytest

from nova.privileged.mounts import Mounts

TABLE = """22 1 8:1 / / rw,relatime - ext4 /dev/sda1 rw
40 22 0:51 / /var/lib/nova/mnt/9f3a rw,relatime shared:9 - nfs4 10.0.0.9:/volumes rw,vers=4.1
41 22 0:52 / /srv/with\\040blank\\134and rw - tmpfs none rw
"""


class Recorder:
    def __init__(self) -> None:
        self.ran: list[list[str]] = []

    def run(self, argv: Any, **_: Any) -> None:
        self.ran.append(list(argv))


@pytest.fixture
def made(tmp_path):
    def make(hosts: str) -> tuple[Mounts, Recorder]:
        for pid, name in (("1", hosts), ("self", "mnt:[1]")):
            (tmp_path / pid / "ns").mkdir(parents=True)
            (tmp_path / pid / "ns/mnt").symlink_to(name)
        (tmp_path / "mountinfo").write_text(TABLE)
        (tmp_path / "boot_id").write_text("0b5e\n")
        runner = Recorder()
        return Mounts(runner, tmp_path / "mountinfo", tmp_path / "boot_id", tmp_path), runner  # type: ignore[arg-type]
    return make


@pytest.mark.parametrize(("path", "there"), [
    ("/var/lib/nova/mnt/9f3a", True), ("/srv/with blank\\and", True), ("/", True), ("/var/lib/nova/mnt", False),
    ("/var/lib/nova/mnt/9f3", False), ("10.0.0.9:/volumes", False)])
def test_path_when_the_kernel_lists_it_then_something_is_mounted_there(made, path, there):
    assert made("mnt:[1]")[0].has(path) is there


def test_mount_when_the_daemon_is_where_all_are_then_it_is_run_as_it_is(made):
    mounts, runner = made("mnt:[1]")
    mounts.mount("10.0.0.9:/volumes", "/mnt/a", "nfs", "vers=4.1,nosuid")
    mounts.mount("10.0.0.9:/volumes", "/mnt/a", "nfs")
    mounts.unmount("/mnt/a")
    assert runner.ran == [["mount", "-t", "nfs", "-o", "vers=4.1,nosuid", "--", "10.0.0.9:/volumes", "/mnt/a"],
                          ["mount", "-t", "nfs", "--", "10.0.0.9:/volumes", "/mnt/a"], ["umount", "--", "/mnt/a"]]


def test_mount_when_the_daemon_is_shielded_then_it_is_run_where_the_host_is(made, tmp_path):
    mounts, runner = made("mnt:[2]")
    mounts.unmount("/mnt/a")
    assert runner.ran == [["nsenter", f"--mount={tmp_path}/1/ns/mnt", "--", "umount", "--", "/mnt/a"]]
    assert mounts.boot_id() == "0b5e"
