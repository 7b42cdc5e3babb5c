"""Sandbox for tools that read untrusted files: bubblewrap (bwrap(1)) around each call.

A tool sees the system's programs and libraries, and only the other files that its call names. It has no network, no
other processes, no /proc and no home. It runs as the user ``nobody``, with one privilege: it may open those files
although they belong to root, or to QEMU's user while a guest has them. Output files are created before the tool starts,
so that their owner does not change.
"""

from __future__ import annotations

import contextlib
import functools
import os
import stat
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from nova import errors, failures
from nova.privileged.client import forwarded
from nova.privileged.opened_files import OpenedFile, descriptor_of
from nova.privileged.runner import CommandRunner

PROGRAM = "bwrap"
ALONE = ("--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try", "--clearenv", "--setenv", "PATH",
         "/usr/sbin:/usr/bin", "--setenv", "LC_ALL", "C")
#: A tool ends with its caller, and its children end with it.
FOR_ONE_CALL = ("--unshare-pid", "--die-with-parent", "--new-session")
TOP = ("/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
#: System settings that change the behaviour of tools: library paths, and options of file systems.
SETTINGS = ("/etc/ld.so.cache", "/etc/alternatives", "/etc/mke2fs.conf")
#: Files that are needed to resolve host names.
NAMES = ("/etc/hosts", "/etc/resolv.conf", "/etc/nsswitch.conf")
NOBODY = "65534"
#: (For a user other than root, access(2) honours a privilege only with that bit.)
AS_NOBODY = ("setpriv", "--securebits=+no_setuid_fixup", "--reuid", NOBODY, "--regid", NOBODY, "--clear-groups",
             *(f"--{part}=-all,+dac_override" for part in ("inh-caps", "ambient-caps", "bounding-set")), "--")
#: On a network file system, its server decides who may open a file, by the user id alone.
AS_ROOT_WITHOUT_PRIVILEGES = ("setpriv", "--inh-caps=-all", "--bounding-set=-all", "--")
NETWORK_FILE_SYSTEMS = ("nfs", "cifs", "smb", "ceph", "gluster", "fuse", "9p", "afs", "lustre")


class ToolFiles(NamedTuple):
    """Files and rights of one call. ``read``, ``write``: existing files (or devices, or directories); ``optional``:
    read if they exist. ``network``: it may connect to other hosts. ``lasts``: it outlives its caller, which finds it
    again by its pid; it sees other processes, but has no power over those of another user."""

    read: tuple[str, ...] = ()
    write: tuple[str, ...] = ()
    optional: tuple[str, ...] = ()
    network: bool = False
    lasts: bool = False


def sandboxed(argv: Sequence[str], files: ToolFiles) -> list[str]:
    """Return the command that runs ``argv`` in the sandbox. (A user other than root can grant only its own rights.)"""
    is_root = os.geteuid() == 0
    words = [PROGRAM, *ALONE, *(() if files.lasts else FOR_ONE_CALL), *(() if is_root else ("--unshare-user",)),
             *(() if files.network else ("--unshare-net",)), *_system()]
    for path in (*files.optional, *(NAMES if files.network else ())):
        words += ["--ro-bind-try", path, path]
    for path in files.read:
        words += _bound("--ro-bind", path)
    for path in files.write:
        words += _bound("--dev-bind" if _is_device(path) else "--bind", path)
    words += ["--remount-ro", "/dev", "--remount-ro", "/"]  # otherwise they could use all memory
    return [*words, "--chdir", "/", "--", *(_identity(files) if is_root else ()), *argv]


def _bound(way: str, path: str) -> tuple[str, ...]:
    """Return options that bind a path. An opened file is bound by its descriptor, because its path may lead elsewhere
    by now."""
    opened = descriptor_of(path)
    return (way, path, path) if opened is None else (f"{way}-fd", str(opened), path)


def exit_code(code: int) -> int:
    """Return the exit code of a sandboxed tool; below 0: the signal that ended it, as elsewhere."""
    return 128 - code if 128 < code <= 128 + 64 else code


def make_empty(path: str) -> None:
    """Create a file (0600) for a tool to write, if it does not exist."""
    if isinstance(path, OpenedFile):
        return
    os.close(os.open(path, os.O_CREAT | os.O_WRONLY | os.O_CLOEXEC, 0o600))


@forwarded("sandbox.check", local=("runner",))
def check(runner: CommandRunner) -> None:
    """Check that the sandbox works on this host. Raises host.NoSandbox if not."""
    with failures.translated(errors.host.CommandFailed,
            lambda error: errors.host.NoSandbox(reason=error.data["reason"])):
        runner.run(sandboxed(["true"], ToolFiles()))


@functools.cache
def _system() -> tuple[str, ...]:
    words = ["--ro-bind", "/usr", "/usr", "--dev", "/dev"]
    for path in TOP:
        if os.path.islink(path):
            words += ["--symlink", os.readlink(path), path]
        elif os.path.isdir(path):
            words += ["--ro-bind", path, path]
    for path in SETTINGS:
        words += ["--ro-bind-try", path, path]
    return tuple(words)


def _identity(files: ToolFiles) -> Sequence[str]:
    paths = (*files.read, *files.write)
    return AS_ROOT_WITHOUT_PRIVILEGES if any(map(_is_on_network, paths)) else AS_NOBODY


def _is_device(path: str) -> bool:
    """Return whether the path is a block device. (An opened file is a regular file.)"""
    with contextlib.suppress(OSError):
        return descriptor_of(path) is None and stat.S_ISBLK(os.stat(path).st_mode)
    return False


def _is_on_network(path: str, mounts: Path = Path("/proc/self/mountinfo")) -> bool:
    """Return whether the file is on a network file system (proc(5))."""
    opened = descriptor_of(path)
    try:
        device = (os.stat(path) if opened is None else os.fstat(opened)).st_dev
    except OSError:
        return False
    number = f"{os.major(device)}:{os.minor(device)}"
    for line in mounts.read_text().splitlines():
        before, _, after = line.partition(" - ")
        if before.split()[2] == number:
            return after.startswith(NETWORK_FILE_SYSTEMS)
    return False
