"""Control groups: one for each room, in every hierarchy that the machine has mounted (v1, v2 or both)."""

from __future__ import annotations

import contextlib
import os
import time
from dataclasses import dataclass
from pathlib import Path

COPIED = ("cpuset.cpus", "cpuset.mems")  # a v1 cpuset accepts no process until these are set


@dataclass(frozen=True)
class Hierarchy:
    mountpoint: str
    kind: str  # "cgroup" (v1) or "cgroup2"
    options: str  # for mount -o: the controllers, or a name
    base: str  # the group this process is in, relative to the mount; for v2 the root, whose controllers are delegated

    @property
    def directory(self) -> Path:
        return Path(self.mountpoint + self.base.rstrip("/"))


def hierarchies(mountinfo: str, own: str, v2_too: bool = False) -> list[Hierarchy]:
    """Parse the texts of /proc/self/mountinfo and /proc/PID/cgroup. `v2_too`: use that process' group in v2, too."""
    groups = {controllers: path for _, controllers, path in (line.split(":", 2) for line in own.splitlines())}
    found = {}
    for line in mountinfo.splitlines():
        left, _, right = line.partition(" - ")
        kind, _, options = right.split(" ", 2)
        if kind not in ("cgroup", "cgroup2"):
            continue
        root, mountpoint = left.split()[3:5]
        named = "" if kind == "cgroup2" else ",".join(o for o in options.split(",") if o not in ("rw", "ro", "xattr"))
        path = "/" if kind == "cgroup2" and not v2_too else groups.get(named, "/")
        base = path if root == "/" else path.removeprefix(root) or "/"
        found[mountpoint] = Hierarchy(mountpoint, kind, named, base)
    return list(found.values())


def here() -> list[Hierarchy]:
    return hierarchies(Path("/proc/self/mountinfo").read_text(), Path("/proc/self/cgroup").read_text())


def join(name: str, of: list[Hierarchy], leaf: str = "") -> None:
    """Create the group `name` (like `nova-sandbox-default/host1`) if it is missing, and move this process into it."""
    for hierarchy in of:
        directory = hierarchy.directory
        for part in [*name.split("/"), *([leaf] if leaf and hierarchy.kind == "cgroup2" else [])]:
            parent, directory = directory, directory / part
            directory.mkdir(exist_ok=True)
            if hierarchy.kind == "cgroup2" and part != leaf:
                _delegate(parent)
            for setting in COPIED:
                if (parent / setting).exists() and not (directory / setting).read_text().strip():
                    (directory / setting).write_text((parent / setting).read_text())
        (directory / "cgroup.procs").write_text(str(os.getpid()))


def join_process(pid: int) -> None:
    """Move this process into the groups of another: entering a cgroup namespace changes only its view."""
    theirs = Path(f"/proc/{pid}/cgroup").read_text()
    for hierarchy in hierarchies(Path("/proc/self/mountinfo").read_text(), theirs, v2_too=True):
        with contextlib.suppress(OSError):  # the process stays where it is in a read-only hierarchy
            (hierarchy.directory / "cgroup.procs").write_text(str(os.getpid()))


def _delegate(group: Path) -> None:
    """Delegate a v2 group's controllers to its child groups; libvirt works without a controller that is missing."""
    for controller in (group / "cgroup.controllers").read_text().split():
        with contextlib.suppress(OSError):
            (group / "cgroup.subtree_control").write_text(f"+{controller}")


def mount_commands(of: list[Hierarchy]) -> list[list[str]]:
    """Return commands that mount the hierarchies on a new /sys; in a cgroup namespace they show the room's group."""
    commands = []
    if any(h.mountpoint != "/sys/fs/cgroup" for h in of):
        commands.append(["mount", "-t", "tmpfs", "-o", "mode=755", "cgroup-root", "/sys/fs/cgroup"])
    for hierarchy in of:
        if hierarchy.mountpoint != "/sys/fs/cgroup":
            commands.append(["mkdir", "-p", hierarchy.mountpoint])
        options = ["-o", hierarchy.options] if hierarchy.options else []
        if hierarchy.options.startswith("name="):
            options = ["-o", f"none,{hierarchy.options}"]
        commands.append(["mount", "-t", hierarchy.kind, *options, "cgroup", hierarchy.mountpoint])
    return commands


def remove(name: str, patience: float = 5.0) -> list[str]:
    """Remove the group and its child groups. Returns the groups that cannot be removed because processes run there."""
    return [
        str(top) for top in (h.directory / name for h in here()) if top.is_dir() and not _remove_tree(top, patience)
    ]


def _remove_tree(top: Path, patience: float) -> bool:
    deadline = time.monotonic() + patience
    while top.is_dir():
        for directory, _, _ in os.walk(top, topdown=False):
            with contextlib.suppress(OSError):  # busy until the kernel has removed its last process: retried
                os.rmdir(directory)
        if time.monotonic() > deadline:
            return False
        if top.is_dir():
            time.sleep(0.05)
    return True
