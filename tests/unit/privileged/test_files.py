from __future__ import annotations

import fcntl
import os
from pathlib import Path

import pytest

from nova import errors
from nova.privileged import files
from nova.privileged.runner import SystemRunner


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
        with pytest.raises(errors.host.LockBusy), files.locked(path, timeout_s=0.1):
            pass
    with files.locked(path, timeout_s=0.1):
        pass


def test_enable_forwarding_writes_only_when_it_is_off(tmp_path):
    switch = tmp_path / "ip_forward"
    switch.write_text("0\n")
    files.enable_forwarding(switch)
    assert switch.read_text() == "1\n"
    os.utime(switch, (1, 1))
    files.enable_forwarding(switch)
    assert switch.stat().st_mtime == 1


def _ipv6(root: Path, **devices: tuple[str, str]) -> Path:
    """A kernel's settings: device to disable_ipv6 and accept_ra."""
    for name, (disabled, listens) in {"all": ("0", "1"), "default": ("0", "1"), **devices}.items():
        (root / name).mkdir()
        (root / name / "disable_ipv6").write_text(f"{disabled}\n")
        (root / name / "accept_ra").write_text(f"{listens}\n")
    (root / "all" / "forwarding").write_text("0\n")
    return root


def test_enable_forwarding_v6_when_the_host_has_a_router_then_it_is_heard_and_no_guest_s_is(tmp_path):
    settings = _ipv6(tmp_path, eth0=("0", "1"), eth1=("0", "0"), br1=("1", "1"))
    files.enable_forwarding_v6(settings)
    heard = {path.parent.name: path.read_text().strip() for path in settings.glob("*/accept_ra")}
    assert heard == {"all": "1", "default": "1", "eth0": "2", "eth1": "0", "br1": "1"}
    assert (settings / "all" / "forwarding").read_text() == "1\n"
    (settings / "eth1" / "accept_ra").write_text("1\n")
    files.enable_forwarding_v6(settings)
    assert (settings / "eth1" / "accept_ra").read_text() == "1\n"


def test_ipv6_when_the_host_does_not_speak_it_on_a_device_then_its_switch_says_so_alone(tmp_path):
    settings = _ipv6(tmp_path, br1=("0", "1"), br2=("0", "1"))
    files.speak_ipv6("br1", False, settings)
    switch = settings / "br1" / "disable_ipv6"
    assert switch.read_text() == "1"
    os.utime(switch, (1, 1))
    files.speak_ipv6("br1", False, settings)
    assert switch.stat().st_mtime == 1
    files.hear_no_routers("br1", settings)
    files.speak_ipv6("br1", True, settings)
    assert switch.read_text() == "0" and (settings / "br1" / "accept_ra").read_text() == "0"
    assert (settings / "br2" / "disable_ipv6").read_text() == "0\n"


def test_ipv6_when_the_kernel_has_none_then_nothing_is_to_be_done(tmp_path):
    files.speak_ipv6("br1", False, tmp_path / "none")
    files.hear_no_routers("br1", tmp_path / "none")


@pytest.mark.parametrize(("argv", "reason"), [
    (["no-such-program-of-ours"], "not installed"),
    (["sh", "-c", "echo oh dear >&2; exit 3"], "oh dear"),
    (["sleep", "5"], "longer than 0.2 s"),
])
def test_run_when_it_fails_says_why(argv, reason):
    with pytest.raises(errors.host.CommandFailed, match=reason):
        SystemRunner(timeout_s=0.2).run(argv)


def test_run_gives_output_and_passes_input_and_environment():
    done = SystemRunner().run(["sh", "-c", "cat; echo $WORD; exit 1"], stdin="in ", ok=(1,), environment={"WORD": "w"})
    assert (done.code, done.stdout) == (1, "in w\n")
