"""What a migration's process gives to QEMU: by root to QEMU's user, by who is not root to QEMU's group."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from nova.migrationproxy.process import give

GIVING = "import sys; from pathlib import Path; from nova.migrationproxy.process import give; " \
         "give(Path(sys.argv[1]), (54321, int(sys.argv[2])))"

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="needs root")


def given(path: Path, group: int, groups: list[int]) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-W", "ignore", "-c", GIVING, str(path), str(group)], capture_output=True,
                          text=True, timeout=60, check=False, user=65534, group=65534, extra_groups=groups)


@pytest.fixture
def made(tmp_path: Path) -> Path:
    for folder in (tmp_path, *tmp_path.parents[:2]):
        folder.chmod(0o755)
    path = tmp_path / "socket"
    path.touch(mode=0o600)
    os.chown(path, 65534, 65534)
    return path


def test_socket_when_root_gives_it_then_it_is_qemus_user_and_nobody_elses(made: Path) -> None:
    give(made, (54321, 54322))
    facts = made.stat()
    assert (facts.st_uid, facts.st_gid, facts.st_mode & 0o777) == (54321, 54322, 0o600)


def test_socket_when_a_member_of_qemus_group_gives_it_then_the_group_may_use_it_and_others_not(made: Path) -> None:
    assert given(made, 54322, [54322]).returncode == 0
    facts = made.stat()
    assert (facts.st_uid, facts.st_gid, facts.st_mode & 0o777) == (65534, 54322, 0o660)


def test_socket_when_somebody_else_gives_it_then_the_reason_names_the_group(made: Path) -> None:
    done = given(made, 54322, [])
    assert "PermissionError: nova-compute's user is not in QEMU's group 54322" in done.stderr
    assert made.stat().st_mode & 0o777 == 0o600
