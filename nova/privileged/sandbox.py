"""Where the tools that read strangers' files run: bubblewrap (bwrap(1)) around each call.

A tool sees the system's programs and libraries, and of all other files those that its call names; no network, no
process but its own, no /proc and no home. It is nobody, without privileges but one: as the files that it may see belong
to root, or to QEMU's user while a guest has them, it may open them all the same. What it is to write is made by us
before it starts, so that nothing changes its owner.
"""

from __future__ import annotations

import functools
import os
import stat
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from nova import errors
from nova.privileged.client import forwarded
from nova.privileged.opened_files import OpenedFile, descriptor_of
from nova.privileged.runner import CommandRunner

PROGRAM = "bwrap"
ALONE = ("--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try", "--clearenv", "--setenv", "PATH",
         "/usr/sbin:/usr/bin", "--setenv", "LC_ALL", "C")
#: A tool ends with its caller, and what it leaves behind with it.
FOR_ONE_CALL = ("--unshare-pid", "--die-with-parent", "--new-session")
TOP = ("/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
#: Of the system's settings, those that change what tools do: libraries' places, and the options of file systems.
SETTINGS = ("/etc/ld.so.cache", "/etc/alternatives", "/etc/mke2fs.conf")
#: What it takes to find a host by its name.
NAMES = ("/etc/hosts", "/etc/resolv.conf", "/etc/nsswitch.conf")
NOBODY = "65534"
#: (access(2) heeds a privilege of who is not root with that bit alone.)
AS_NOBODY = ("setpriv", "--securebits=+no_setuid_fixup", "--reuid", NOBODY, "--regid", NOBODY, "--clear-groups",
             *(f"--{part}=-all,+dac_override" for part in ("inh-caps", "ambient-caps", "bounding-set")), "--")
#: On a file system of the network its server decides who may open what, by the user's number alone.
AS_ROOT_WITHOUT_PRIVILEGES = ("setpriv", "--inh-caps=-all", "--bounding-set=-all", "--")
NETWORK_FILE_SYSTEMS = ("nfs", "cifs", "smb", "ceph", "gluster", "fuse", "9p", "afs", "lustre")


class ToolFiles(NamedTuple):
    """What one call may touch. ``read``, ``write``: files (or devices, or directories) that are there; ``optional``:
    read where they are there. ``network``: it may speak with other hosts. ``lasts``: it outlives its caller, who finds
    it again by its pid; it sees others' processes, and can do nothing to those of another user."""

    read: tuple[str, ...] = ()
    write: tuple[str, ...] = ()
    optional: tuple[str, ...] = ()
    network: bool = False
    lasts: bool = False


def sandboxed(argv: Sequence[str], files: ToolFiles) -> list[str]:
    """The command that runs ``argv`` in there. (Whoever is not root has no more rights to give away than its own.)"""
    is_root = os.geteuid() == 0
    words = [PROGRAM, *ALONE, *(() if files.lasts else FOR_ONE_CALL), *(() if is_root else ("--unshare-user",)),
             *(() if files.network else ("--unshare-net",)), *_system()]
    for path in (*files.optional, *(NAMES if files.network else ())):
        words += ["--ro-bind-try", path, path]
    for path in files.read:
        words += _bound("--ro-bind", path)
    for path in files.write:
        words += _bound("--dev-bind" if _is_device(path) else "--bind", path)
    words += ["--remount-ro", "/dev", "--remount-ro", "/"]  # or they would be as much memory as there is
    return [*words, "--chdir", "/", "--", *(_identity(files) if is_root else ()), *argv]


def _bound(way: str, path: str) -> tuple[str, ...]:
    """An opened file is bound by its descriptor: its path may lead elsewhere by now."""
    opened = descriptor_of(path)
    return (way, path, path) if opened is None else (f"{way}-fd", str(opened), path)


def exit_code(code: int) -> int:
    """Of a tool in there: below 0 the signal that ended it, as elsewhere."""
    return 128 - code if 128 < code <= 128 + 64 else code


def make_empty(path: str) -> None:
    """A file for a tool to write (0600), if there is none."""
    if isinstance(path, OpenedFile):
        return
    os.close(os.open(path, os.O_CREAT | os.O_WRONLY | os.O_CLOEXEC, 0o600))


@forwarded("sandbox.check", local=("runner",))
def check(runner: CommandRunner) -> None:
    """host.NoSandbox: there can be none on this host."""
    try:
        runner.run(sandboxed(["true"], ToolFiles()))
    except errors.host.CommandFailed as error:
        raise errors.host.NoSandbox(reason=error.data["reason"]) from error


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
    """(An opened file is a plain one.)"""
    try:
        return descriptor_of(path) is None and stat.S_ISBLK(os.stat(path).st_mode)
    except OSError:
        return False


def _is_on_network(path: str, mounts: Path = Path("/proc/self/mountinfo")) -> bool:
    """By the kind of the file system that has the file (proc(5))."""
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
