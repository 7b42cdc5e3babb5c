"""What a tool can do that a hostile image has taken over: here a shell, in the tools' own sandbox."""

from __future__ import annotations

import os
import select
import shlex
import shutil
import socket
import stat
import subprocess
import time
from pathlib import Path

import pytest

from nova import errors
from nova.privileged import sandbox
from nova.privileged.qemu_img import ImageFile, Overlay, QemuImg
from nova.privileged.runner import Completed, PrivateRunner
from nova.privileged.sandbox import ToolFiles, exit_code, sandboxed


def unable() -> str:
    if not shutil.which("bwrap"):
        return "needs bubblewrap"
    try:
        sandbox.check(PrivateRunner(20))
    except errors.host.NoSandbox as error:
        return error.message
    return ""


needs_sandbox = pytest.mark.skipif(bool(unable()), reason=unable() or "-")
AS_ROOT = os.geteuid() == 0


def tried(script: str, files: ToolFiles = ToolFiles()) -> Completed:  # noqa: B008 - an immutable value
    """What a shell says that is in the place of a tool."""
    return PrivateRunner(20).run(sandboxed(["sh", "-c", script], files), ok=range(-64, 256))


@pytest.fixture
def folders(tmp_path: Path) -> tuple[Path, Path]:
    """A guest's own disk, and another's."""
    own, other = tmp_path / "own" / "disk", tmp_path / "other" / "disk"
    for path in (own, other):
        path.parent.mkdir(mode=0o700)
        path.write_text("precious")
        path.chmod(0o600)
    return own, other


@needs_sandbox
@pytest.mark.parametrize("script", [
    "cat {other}", "ls {top}/other", "cat /etc/shadow", "cat /etc/passwd", "ls /root", "ls /home", "ls /var", "ls /run",
    "ls /proc/1", "ls /sys", "echo x > {own}", "echo x > {top}/own/beside", "mv {own} {own}2", "rm {own}",
    "echo x > /usr/bin/x", "echo x > /x", "echo x > /dev/shm/x",
    "mknod /dev/x b 8 0", "mount -t proc proc /mnt", "chown 1 {own}", "chmod 666 {own}",
    "kill -9 {pid}", "ls /tmp/*/*/../../../etc/shadow", "unshare -r true", "cat /dev/sda", "cat /dev/mem"])
def test_tool_when_it_was_taken_over_then_it_cannot(folders, script):
    own, other = folders
    words = script.format(own=own, other=other, top=own.parents[1], pid=os.getpid())
    if words.startswith("unshare") and not AS_ROOT:
        pytest.skip("who is not root is in a user's namespace already, and gains nothing by another")
    done = tried(words, ToolFiles(read=(str(own),)))
    assert done.code != 0 and "precious" not in done.stdout and own.read_text() == "precious" == other.read_text()
    assert stat.S_IMODE(own.stat().st_mode) == 0o600


@needs_sandbox
def test_tool_when_it_reads_and_writes_what_its_call_names_then_it_can(folders):
    own, other = folders
    done = tried(f"cat {own}; echo changed > {other}", ToolFiles(read=(str(own),), write=(str(other),)))
    assert (done.code, done.stdout, other.read_text()) == (0, "precious", "changed\n")


@needs_sandbox
def test_tool_then_it_is_nobody_with_one_privilege_and_a_clean_environment(monkeypatch):
    monkeypatch.setenv("OS_PASSWORD", "secret")
    done = tried("id -u; env; echo $$")
    assert "secret" not in done.stdout and done.stdout.splitlines()[-1] == "2", "the second process of its own world"
    if AS_ROOT:
        assert done.stdout.splitlines()[0] == sandbox.NOBODY
        bounds = tried("setpriv --dump")
        assert "Capability bounding set: dac_override" in bounds.stdout and "no_new_privs: 1" in bounds.stdout


@needs_sandbox
@pytest.mark.parametrize("network", [False, True])
def test_tool_when_it_calls_then_it_has_a_network_where_its_call_says_so(network):
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        done = tried(f"exec 3<>/dev/tcp/127.0.0.1/{port}".join(("bash -c '", "'")), ToolFiles(network=network))
    assert (done.code == 0) is network


def nobody_writes_to(stream, seconds: float = 10.0) -> bool:
    """Whether nobody is left who could write there, after so long at most."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        readable, _, _ = select.select([stream], [], [], 0.1)
        if readable and not os.read(stream.fileno(), 4096):
            return True
    return False


@needs_sandbox
def test_tool_when_it_leaves_a_child_behind_then_that_ends_with_it():
    argv = sandboxed(["sh", "-c", "setsid sleep 60 & echo there"], ToolFiles())
    with subprocess.Popen(argv, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None and nobody_writes_to(process.stdout)
    assert process.returncode == 0


@needs_sandbox
def test_tool_when_who_called_it_is_killed_then_it_ends():
    command = shlex.join(sandboxed(["sh", "-c", "echo there; sleep 60"], ToolFiles()))
    with subprocess.Popen(["sh", "-c", f"{command} & wait"], stdout=subprocess.PIPE) as caller:
        assert caller.stdout is not None and os.read(caller.stdout.fileno(), 6) == b"there\n"
        caller.kill()
        assert nobody_writes_to(caller.stdout)


@needs_sandbox
@pytest.mark.parametrize(("ending", "code"), [("exit 3", 3), ("kill -ABRT $$", -6), ("kill -XCPU $$", -24)])
def test_exit_code_when_a_signal_ended_the_tool_then_it_is_below_zero(ending, code):
    assert exit_code(tried(ending).code) == code


@needs_sandbox
@pytest.mark.skipif(not AS_ROOT, reason="needs root: a file of QEMU's user")
def test_tool_when_qemus_user_has_the_base_then_it_is_read_and_its_owner_stays(tmp_path):
    base, disk = tmp_path / "base", tmp_path / "disk"
    base.write_bytes(bytes(1 << 20))
    base.chmod(0o600)
    os.chown(base, 64055, 109)
    QemuImg().create_overlay(Overlay(str(disk), str(base), "raw", 1 << 20))
    QemuImg().convert(ImageFile(str(disk), "qcow2", str(base)), ImageFile(str(tmp_path / "copy"), "raw"))
    assert (base.stat().st_uid, disk.stat().st_uid, (tmp_path / "copy").stat().st_uid) == (64055, 0, 0)
    assert stat.S_IMODE(disk.stat().st_mode) == 0o600


@needs_sandbox
@pytest.mark.skipif(not shutil.which("qemu-img"), reason="needs qemu-img")
def test_image_when_its_header_names_another_guests_disk_then_the_tool_does_not_see_that(folders, tmp_path):
    """Past all looks at its header: the sandbox alone."""
    own, other = folders
    other.write_bytes(b"precious".ljust(1 << 20, b"."))
    own.unlink()
    QemuImg().create_overlay(Overlay(str(own), str(other), "raw", 1 << 20))
    target = tmp_path / "copy"
    with pytest.raises(errors.host.ImageTool):
        QemuImg().convert(ImageFile(str(own), "qcow2"), ImageFile(str(target), "raw"))
    assert b"precious" not in target.read_bytes()


# --- the command alone

def test_command_when_files_are_on_a_network_then_it_keeps_its_number_and_loses_its_privileges(tmp_path):
    mounts = tmp_path / "mountinfo"
    device = os.stat(tmp_path).st_dev
    number = f"{os.major(device)}:{os.minor(device)}"
    for kind, expected in (("nfs4", True), ("fuse.glusterfs", True), ("ext4", False), ("xfs", False)):
        mounts.write_text(f"21 1 0:99 / /x rw - ext4 a rw\n22 1 {number} / {tmp_path} rw,noatime - {kind} srv:/x rw\n")
        assert sandbox._is_on_network(str(tmp_path), mounts) is expected
    assert sandbox._is_on_network(str(tmp_path / "missing"), mounts) is False
    assert not any("dac_override" in word for word in sandbox.AS_ROOT_WITHOUT_PRIVILEGES)


def test_command_when_it_is_any_then_nothing_of_the_host_is_in_it_but_its_programs():
    argv = sandboxed(["true"], ToolFiles())
    shown = {argv[at + 1] for at, word in enumerate(argv) if word in ("--bind", "--dev-bind", "--ro-bind")}
    assert shown <= {"/usr", *sandbox.TOP} and "--unshare-net" in argv and "--die-with-parent" in argv


class Refusing:
    """As a machine where no namespace can be made."""

    def run(self, argv, **options):
        raise errors.host.CommandFailed(command=argv[0], where="here", reason="bwrap is not installed")


def test_check_when_there_can_be_no_sandbox_then_it_says_what_to_install():
    with pytest.raises(errors.host.NoSandbox, match="bwrap is not installed") as refused:
        sandbox.check(Refusing())
    assert "bubblewrap" in refused.value.cure
