from __future__ import annotations

import fcntl
import os

import pytest

from nova.privileged import files
from nova.privileged.runner import CommandFailed, SystemRunner


def test_write_whole_when_the_text_is_there_changes_nothing(tmp_path):
    path = tmp_path / "sub" / "file"
    assert files.write_whole(path, "one") is True
    inode = path.stat().st_ino
    assert files.write_whole(path, "one") is False and path.stat().st_ino == inode
    assert files.write_whole(path, "two") is True and path.read_text() == "two"
    assert [entry.name for entry in path.parent.iterdir()] == ["file"]


def test_write_whole_makes_the_mode_it_is_told(tmp_path):
    path = tmp_path / "file"
    files.write_whole(path, "x", 0o600)
    assert path.stat().st_mode & 0o777 == 0o600


def test_locked_when_another_holds_it_gives_up_in_time(tmp_path):
    path = tmp_path / "lock"
    with open(path, "w") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        with pytest.raises(files.LockBusy), files.locked(path, patience_s=0.1):
            pass
    with files.locked(path, patience_s=0.1):
        pass


def test_enable_forwarding_writes_only_when_it_is_off(tmp_path):
    switch = tmp_path / "ip_forward"
    switch.write_text("0\n")
    files.enable_forwarding(switch)
    assert switch.read_text() == "1\n"
    os.utime(switch, (1, 1))
    files.enable_forwarding(switch)
    assert switch.stat().st_mtime == 1


@pytest.mark.parametrize(("argv", "reason"), [
    (["no-such-program-of-ours"], "not installed"),
    (["sh", "-c", "echo oh dear >&2; exit 3"], "oh dear"),
    (["sleep", "5"], "longer than 0.2 s"),
])
def test_run_when_it_fails_says_why(argv, reason):
    with pytest.raises(CommandFailed, match=reason):
        SystemRunner(timeout_s=0.2).run(argv)


def test_run_gives_output_and_passes_input_and_environment():
    done = SystemRunner().run(["sh", "-c", "cat; echo $WORD; exit 1"], stdin="in ", ok=(1,), environment={"WORD": "w"})
    assert (done.code, done.stdout) == (1, "in w\n")
