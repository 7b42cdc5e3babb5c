"""Rooms: a set of namespaces (network, mounts, UTS, IPC, PID, cgroup) kept by one init process.

A room simulates a machine: own host name, interfaces, mounts, processes, control groups. Its init is a child of the
supervisor, reaps the room's orphaned processes and dies with the supervisor. The kernel then ends all processes of the
room, so that none is left.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TypeVar

from . import cgroups, kernel
from .errors import StackError

INIT = Path(__file__).with_name("roominit.py")
Result = TypeVar("Result")


@dataclass(frozen=True, kw_only=True)
class RoomPlan:
    """Definition of a room. `binds`: (source, target) pairs of files or directories; `group`: the control group."""

    name: str
    group: str
    hosts_file: str
    binds: tuple[tuple[str, str], ...] = ()
    mask_kvm: bool = False

    def to_json(self) -> dict:
        return asdict(self)


def plan_from_json(value: dict) -> RoomPlan:
    return RoomPlan(**{**value, "binds": tuple((source, target) for source, target in value["binds"])})


def create(plan: RoomPlan) -> int:
    """Create the room and return the PID of its init. The caller must have one thread only. Raises StackError."""
    ours, theirs = socket.socketpair()
    with kernel.PidNamespaceForChildren(None):
        pid = os.fork()
    if pid == 0:
        ours.close()
        _become_init(plan, theirs)
    theirs.close()
    with ours:
        ours.settimeout(20)
        try:
            answer = ours.recv(2000).decode()
        except TimeoutError:
            answer = "not ready after 20 s"
    if answer != "ok":
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        raise StackError(f"room {plan.name}: {answer or 'its init died'}", "namespaces need root and CAP_SYS_ADMIN")
    return pid


def _become_init(plan: RoomPlan, report: socket.socket) -> None:
    try:
        signal.set_wakeup_fd(-1)
        kernel.die_with_parent(signal.SIGKILL)
        os.setsid()
        os.umask(0o022)
        groups = cgroups.here()
        cgroups.join(plan.group, groups)
        kernel.unshare(kernel.NEWCGROUP)
        # A v2 group that has processes of its own cannot delegate controllers: the room's processes are in a leaf.
        cgroups.join(plan.group, groups, leaf="daemons")
        kernel.unshare(kernel.NEWNS | kernel.NEWUTS | kernel.NEWIPC | kernel.NEWNET)
        socket.sethostname(plan.name)
        for command in mount_commands(plan, groups):
            subprocess.run(command, check=True, capture_output=True, text=True)
        report.send(b"ok")
        report.close()
        null = os.open("/dev/null", os.O_RDWR)
        for fd in (0, 1, 2):
            os.dup2(null, fd)
        os.execv(sys.executable, [sys.executable, "-IS", str(INIT), plan.name])
    except subprocess.CalledProcessError as error:
        report.send(f"{' '.join(error.cmd)}: {error.stderr.strip()}".encode())
    except BaseException as error:  # noqa: BLE001 - on every error, report it to the parent and end the child
        report.send(f"{type(error).__name__}: {error}".encode())
    finally:
        os._exit(1)


# A file that not even root may write to. With /dev/null in its place, libvirt assumes a usable /dev/kvm, QEMU reports
# none, and libvirt probes QEMU again about ten times for each guest's start (12 s instead of 0.4).
HIDE_KVM = [
    ["touch", "/run/no-kvm"],
    ["mount", "--bind", "/run/no-kvm", "/dev/kvm"],
    ["mount", "-o", "remount,bind,ro", "/dev/kvm"],
]


def mount_commands(plan: RoomPlan, groups: list[cgroups.Hierarchy]) -> list[list[str]]:
    """Return the commands that mount the room's own /proc, /sys, /run and the files that differ between hosts."""
    return [
        ["mount", "--make-rprivate", "/"],
        ["mount", "-t", "proc", "proc", "/proc"],
        # unmount the old tree first: libvirt reads /proc/mounts and would find the machine's cgroups there
        ["umount", "-R", "-l", "/sys"],
        ["mount", "-t", "sysfs", "sysfs", "/sys"],
        *cgroups.mount_commands(groups),
        ["mount", "-t", "tmpfs", "-o", "mode=755", "run", "/run"],
        ["mkdir", "-p", "/run/lock"],
        ["mount", "--bind", plan.hosts_file, "/etc/hosts"],
        *(["mount", "--bind", source, target] for source, target in plan.binds),
        *(HIDE_KVM if plan.mask_kvm else []),
    ]


# --- for commands: entering a room ----------------------------------------------------------------------------------


def in_network(pid: int | None, work: Callable[[], Result]) -> Result:
    """Call `work` in a separate thread in the room's network namespace; its child processes inherit the namespace."""
    if pid is None:
        return work()
    outcome: dict[str, object] = {}

    def run() -> None:
        try:
            kernel.enter(pid, ("net",))
            outcome["result"] = work()
        except BaseException as error:  # noqa: BLE001 - carried over to the caller's thread
            outcome["error"] = error

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join()
    if "error" in outcome:
        raise outcome["error"]  # type: ignore[misc]
    return outcome["result"]  # type: ignore[return-value]


def run_inside(pid: int | None, argv: list[str], env: dict[str, str]) -> int:
    """Run a command in all namespaces of the room, on this terminal, and return its exit status like a shell."""
    if pid is None:
        return _wait(_fork_command(argv, env, None))
    with kernel.PidNamespaceForChildren(pid):
        child = _fork_command(argv, env, pid)
    return _wait(child)


def _fork_command(argv: list[str], env: dict[str, str], room: int | None) -> int:
    child = os.fork()
    if child:
        return child
    try:
        directory = os.getcwd()
        if room is not None:
            cgroups.join_process(room)
            kernel.enter(room)
            os.chdir(directory if os.path.isdir(directory) else "/")
        os.execvpe(argv[0], argv, env)
    except OSError as error:
        os.write(2, f"stack: {argv[0]}: {error.strerror or error}\n".encode())
        os._exit(127 if isinstance(error, FileNotFoundError) else 126)
    finally:
        os._exit(1)


def _wait(child: int) -> int:
    previous = {number: signal.signal(number, signal.SIG_IGN) for number in (signal.SIGINT, signal.SIGQUIT)}
    signal.signal(signal.SIGTERM, lambda *_: os.kill(child, signal.SIGTERM))
    try:
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        return code if code >= 0 else 128 - code
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
