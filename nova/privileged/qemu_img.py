"""qemu-img on files of users: every call states the formats, and limits time, processor time and memory.

The format of a file always comes from nova's own record, never from the file's content, which a guest or a user wrote.
Callers have inspected an image with ``nova.compute.guests.image_format`` before.
"""

from __future__ import annotations

import errno
import os
import re
import signal
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from nova import errors
from nova.privileged import sandbox
from nova.privileged.client import forwarded
from nova.privileged.disk_exports import ReadExport
from nova.privileged.runner import CommandRunner, Completed, PrivateRunner, hide
from nova.privileged.sandbox import ToolFiles

#: Nova's name of a format -> qemu-img's.
TOOL_NAMES = {"raw": "raw", "qcow2": "qcow2", "vhd": "vpc", "vhdx": "vhdx", "vdi": "vdi", "vmdk": "vmdk", "iso": "raw",
              "ami": "raw", "ari": "raw", "aki": "raw"}
#: Under load, the tool aborts once in some hundred runs, regardless of its limits; a retry of the same run succeeds.
ABORT_TRIES = 3
#: Paths that librbd reads, in addition to the configuration that an address names.
CEPH = ("/etc/ceph",)
RBD = "rbd:"
NO_SPACE = (os.strerror(errno.ENOSPC), os.strerror(errno.EDQUOT))


class ToolLimits(NamedTuple):
    """Limits of one run. ``file_bytes``: the longest file that it may write; None: unlimited."""

    cpu_s: int = 600
    memory_mb: int = 4096  # of address space, of which each of the tool's threads may reserve 64 MB and use little
    file_bytes: int | None = None

    def argv(self) -> list[str]:
        """Return the words before a tool's own command that make it run within the limits (prlimit(1))."""
        limits = [f"--cpu={self.cpu_s}", f"--as={self.memory_mb << 20}", "--core=0"]
        if self.file_bytes is not None:
            limits.append(f"--fsize={self.file_bytes}")
        return ["prlimit", *limits, "--"]


class ImageFile(NamedTuple):
    """A file with a disk (or a device; or an image in Ceph, by its address). ``over``: the base of a qcow2 file; it
    cannot be read without it."""

    path: str
    format: str
    over: str = ""


@dataclass(frozen=True)
class Overlay:
    """A qcow2 overlay on ``base``. ``size_bytes`` is the size that the guest sees."""

    path: str
    base: str
    base_format: str
    size_bytes: int


class QemuImg:
    """Calls of qemu-img. ``runner_of(timeout_s)`` returns the command runner; tests pass a recording runner."""

    def __init__(self, limits: ToolLimits = ToolLimits(), timeout_s: float = 600.0,  # noqa: B008 - an immutable value
                         runner_of: Callable[[float], CommandRunner] = PrivateRunner) -> None:
        self._limits, self._timeout_s, self._runner = limits, timeout_s, runner_of(timeout_s)

    def sent_along(self) -> Mapping[str, object]:
        """Return the limits of its runs."""
        return {"limits": self._limits, "timeout_s": self._timeout_s}

    @forwarded("qemu_img.convert")
    def convert(self, source: ImageFile, target: ImageFile, max_bytes: int | None = None) -> None:
        """Copy ``source`` as ``target``, sparse. ``max_bytes``: the longest permitted result."""
        argv = ["qemu-img", "convert", "-f", TOOL_NAMES[source.format], "-O", TOOL_NAMES[target.format],
                "-S", "64k", source.path, target.path]
        sandbox.make_empty(target.path)
        self._run("convert an image", argv, _seen(source)._replace(write=(target.path,)),
                  self._limits._replace(file_bytes=max_bytes))

    @forwarded("qemu_img.fetch")
    def fetch(self, export: ReadExport, target: str, max_bytes: int | None = None) -> None:
        """Copy an export of another host (``disk_exports.reading``) unchanged, sparse, and at most ``max_bytes``. No
        other call connects to other hosts."""
        argv = ["qemu-img", "convert", *(word for one in export.objects for word in ("--object", one)),
                "--image-opts", "-O", "raw", "-S", "64k", export.options, target]
        sandbox.make_empty(target)
        self._run("fetch a disk", argv, ToolFiles(read=(export.keys,), write=(target,), network=True),
                  self._limits._replace(file_bytes=max_bytes))

    @forwarded("qemu_img.rebase")
    def rebase(self, path: str, base: str, base_format: str) -> None:
        """Change the base of an overlay to ``base``, which has the same content as the old one."""
        self._run("change the base of a disk", ["qemu-img", "rebase", "-q", "-u", "-f", "qcow2", "-F", base_format,
                                                "-b", base, path], ToolFiles(read=(base,), write=(path,)))

    @forwarded("qemu_img.pull")
    def pull(self, path: str, base: tuple[str, str] | None, below: Sequence[str]) -> None:
        """Copy the content of the files ``below`` an overlay into it, down to ``base`` (its name in the same directory,
        and its format), which becomes its base; None: no base."""
        name, image_format = base or ("", "")
        self._run("merge the files of a disk", [
            "qemu-img", "rebase", "-q", "-f", "qcow2", *(("-F", image_format) if image_format else ()), "-b", name,
            path], ToolFiles(read=tuple(below), write=(path,)))

    @forwarded("qemu_img.fill")
    def fill(self, source: ImageFile, target: ImageFile) -> None:
        """Copy ``source`` over an existing ``target`` (a device) with arbitrary content: holes become zeros."""
        self._run("copy an image", ["qemu-img", "convert", "-n", "-f", TOOL_NAMES[source.format],
                                    "-O", TOOL_NAMES[target.format], source.path, target.path],
                  _seen(source)._replace(write=(target.path,)))

    @forwarded("qemu_img.create")
    def create(self, path: str, image_format: str, size_bytes: int) -> None:
        """Create an empty disk."""
        sandbox.make_empty(path)
        self._run("create a disk", ["qemu-img", "create", "-q", "-f", image_format, path, str(size_bytes)],
                  ToolFiles(write=(path,)))

    @forwarded("qemu_img.create_overlay")
    def create_overlay(self, overlay: Overlay) -> None:
        """Create an overlay. The base must exist, and is not opened for writing. Raises host.DiskFull,
        host.ImageTool."""
        sandbox.make_empty(overlay.path)
        self._run("create a disk", ["qemu-img", "create", "-q", "-f", "qcow2", "-F", overlay.base_format,
                                    "-b", overlay.base, overlay.path, str(overlay.size_bytes)],
                  ToolFiles(read=(overlay.base,), write=(overlay.path,)))

    @forwarded("qemu_img.resize")
    def resize(self, disk: ImageFile, size_bytes: int) -> None:
        """Extend a disk to ``size_bytes``."""
        self._run("resize a disk", ["qemu-img", "resize", "-q", "-f", disk.format, disk.path, str(size_bytes)],
                  ToolFiles(read=(disk.over,) if disk.over else (), write=(disk.path,)))

    def _run(self, task: str, argv: Sequence[str], files: ToolFiles, limits: ToolLimits | None = None) -> None:
        for _ in range(ABORT_TRIES):
            done = self._runner.run(sandbox.sandboxed([*(limits or self._limits).argv(), *argv], files),
                                    ok=range(-64, 256))
            done = done._replace(code=sandbox.exit_code(done.code))
            if done.code != -signal.SIGABRT:
                break
        if done.code:
            raise _failure(task, done)


def _seen(source: ImageFile) -> ToolFiles:
    if source.path.startswith(RBD):
        given = dict(part.replace("\\", "").split("=", 1) for part in re.split(r"(?<!\\):", source.path) if "=" in part)
        conf, user = given.get("conf", ""), given.get("id", "admin")
        beside = (conf, f"{os.path.dirname(conf)}/ceph.client.{user}.keyring") if conf else ()
        return ToolFiles(optional=(*CEPH, *beside), network=True)
    return ToolFiles(read=(source.path, source.over) if source.over else (source.path,))


def _failure(task: str, done: Completed) -> errors.NovaError:
    complaint = hide((done.stderr or done.stdout).strip())
    if any(text in complaint for text in NO_SPACE):
        return errors.host.DiskFull(what="a disk", host=os.uname().nodename)
    if done.code < 0 or "File too large" in complaint:
        last = f": {complaint.splitlines()[-1][:200]}" if complaint else ""
        return errors.host.ImageTool(task=task,
                                     reason=f"it exceeded its limits of memory, time or size (exit {done.code}){last}")
    return errors.host.ImageTool(task=task,
                                 reason=complaint.splitlines()[-1][:300] if complaint else f"exit {done.code}")
