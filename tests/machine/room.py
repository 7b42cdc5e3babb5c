"""A room for one libvirtd: namespaces of our own, in which nothing is the machine's but its programs and ``/tmp``.

``python -m tests.machine.room PROGRAM ARGS...`` runs the program in such a room, with libvirtd and virtlogd up; both
end with it. The room has no network but what is made in it, no /dev/kvm, and files of libvirt that go with it.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

NAMESPACES = ("--net", "--mount", "--pid", "--fork", "--mount-proc", "--ipc", "--uts", "--cgroup", "--kill-child")
PRIVATE = ("/run", "/etc/libvirt", "/var/lib/libvirt", "/var/cache/libvirt", "/var/log/libvirt")
NEEDED = ("unshare", "libvirtd", "virtlogd", "qemu-system-x86_64", "qemu-img", "ip")
LIBVIRTD_CONF = """\
host_uuid = "6b1b5f3c-9f4e-4b7e-8f0a-0d3a2f5d7c11"
unix_sock_rw_perms = "0700"
auth_unix_ro = "none"
auth_unix_rw = "none"
"""


def unable() -> str | None:
    """Why no room can be made here; None when one can."""
    if os.geteuid() != 0:
        return "needs root"
    path = os.environ.get("PATH", "") + ":/usr/sbin:/sbin"
    missing = [program for program in NEEDED if shutil.which(program, path=path) is None]
    if missing:
        return f"{', '.join(missing)} not installed"
    tried = subprocess.run(["unshare", *NAMESPACES, "true"], capture_output=True, text=True, check=False)
    return f"unshare: {tried.stderr.strip()}" if tried.returncode else None


def command(*argv: str) -> list[str]:
    """What runs ``argv`` in a room."""
    return ["unshare", *NAMESPACES, sys.executable, "-m", "tests.machine.room", *argv]


def create_sample_data() -> None:
    """Inside: private files, own names, own /sys."""
    _run("mount", "--make-rprivate", "/")
    for folder in PRIVATE:
        Path(folder).mkdir(parents=True, exist_ok=True)
        _run("mount", "-t", "tmpfs", "-o", "mode=0755", "tmpfs", folder)
    _run("mount", "-t", "sysfs", "sysfs", "/sys")
    Path("/run/hugepages").mkdir()
    with contextlib.suppress(subprocess.CalledProcessError):  # not every kernel has any; libvirt looks at its start
        _run("mount", "-t", "hugetlbfs", "-o", "pagesize=2M", "hugetlbfs", "/run/hugepages")
    with contextlib.suppress(subprocess.CalledProcessError):
        _run("mount", "-t", "cgroup2", "cgroup2", "/sys/fs/cgroup")
    if Path("/dev/kvm").exists():
        _hide(Path("/dev/kvm"))
    _run("hostname", "nova-room")
    hosts = Path("/run/hosts")
    hosts.write_text("127.0.0.1 localhost nova-room\n")
    _run("mount", "--bind", str(hosts), "/etc/hosts")
    _run("ip", "link", "set", "lo", "up")
    Path("/etc/libvirt/libvirtd.conf").write_text(LIBVIRTD_CONF)
    Path("/etc/libvirt/virtlogd.conf").write_text("max_size = 65536\nmax_backups = 2\n")
    Path("/etc/libvirt/qemu.conf").write_text('security_driver = "none"\ncgroup_controllers = []\nnamespaces = []\n')


def _hide(device: Path) -> None:
    """Nobody may write to a file on a read-only mount, not even root: libvirt then counts KVM as not there.

    (Over /dev/null it finds it usable, sees QEMU say otherwise, and probes QEMU anew, ten times each guest's start.)
    """
    empty = Path("/run/empty")
    empty.touch()
    _run("mount", "--bind", str(empty), str(device))
    _run("mount", "-o", "remount,bind,ro", str(device))


@contextlib.contextmanager
def daemons() -> Iterator[None]:
    running = [subprocess.Popen([name], stdin=subprocess.DEVNULL, stdout=log, stderr=log)
               for name in ("virtlogd", "libvirtd") for log in (open(f"/run/{name}.log", "w"),)]  # noqa: SIM115
    try:
        _wait_for(Path("/run/libvirt/libvirt-sock"))
        yield
    finally:
        for process in reversed(running):
            process.terminate()
            process.wait(20)


def _wait_for(path: Path, seconds: float = 20) -> None:
    deadline = time.monotonic() + seconds
    while not path.exists():
        if time.monotonic() > deadline:
            raise SystemExit(f"{path} did not appear; libvirtd said: {Path('/run/libvirtd.log').read_text()[-2000:]}")
        time.sleep(0.1)


def _run(*argv: str) -> None:
    subprocess.run(argv, check=True, capture_output=True)


def _as_init() -> None:
    """Stay behind as PID 1, which must bury what others leave (libvirt waits for QEMU to be gone); go on in a child."""
    child = os.fork()
    if child == 0:
        return
    while True:
        pid, status = os.wait()
        if pid == child:
            os._exit(os.waitstatus_to_exitcode(status) & 0xFF)


if __name__ == "__main__":
    _as_init()
    create_sample_data()
    with daemons():
        code = subprocess.run(sys.argv[1:], check=False).returncode
    sys.exit(code)
