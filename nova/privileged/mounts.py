"""Remote file systems mounted on this host: mount(8) and umount(8), as argument lists.

A daemon with a mount namespace of its own (by systemd) sees the host's mounts, but its own mounts are invisible to
other processes, QEMU included. So the programs run in the mount namespace of the host's first process.
"""

from __future__ import annotations

import contextlib
import logging
import os
import re
from pathlib import Path

from nova.privileged.client import forwarded
from nova.privileged.runner import CommandRunner

LOG = logging.getLogger(__name__)

TABLE = Path("/proc/self/mountinfo")
PROCESSES = Path("/proc")
BOOT = Path("/proc/sys/kernel/random/boot_id")
OURS = ".mounted"
ESCAPED = re.compile(r"\\([0-7]{3})")  # the kernel's escapes for blanks and the like in names: proc(5)


class Mounts:
    def __init__(self, runner: CommandRunner, table: Path = TABLE, boot: Path = BOOT,
                 processes: Path = PROCESSES) -> None:
        self._runner, self._table, self._boot, self._processes = runner, table, boot, processes

    def has(self, path: str) -> bool:
        """Return whether anything is mounted on the path. Asks only the kernel, so that a server that is down causes no
        delay."""
        lines = self._table.read_text(errors="surrogateescape").splitlines()
        return any(_plain(line.split(" ")[4]) == path for line in lines)

    def is_ours(self, path: str) -> bool | None:
        """Return whether this host's daemon mounted, or was about to mount, the file system on the path since this boot
        of the kernel, which no mount outlives. None: the path was never used."""
        with contextlib.suppress(FileNotFoundError):
            return _mark(path).read_text() == self.boot_id()
        return None

    @forwarded("mounts.prepare")
    def prepare(self, path: str) -> None:
        """Create the mount point, and next to it a mark that nova uses it. Raises OSError."""
        Path(path).mkdir(parents=True, exist_ok=True)
        _mark(path).write_text(self.boot_id())

    @forwarded("mounts.forget")
    def forget(self, path: str) -> None:
        """Remove the mount point, on which nothing is mounted, and its mark. Files in it belong to other programs, and
        stay."""
        try:
            Path(path).rmdir()
        except OSError as error:
            LOG.info("keeping the directory %s: %s", path, error.strerror)
        self.forget_mark(path)

    @forwarded("mounts.forget_mark")
    def forget_mark(self, path: str) -> None:
        """Remove the mark: the file system that is mounted there belongs to another program."""
        _mark(path).unlink(missing_ok=True)

    @forwarded("mounts.mount")
    def mount(self, source: str, path: str, type_: str, options: str = "") -> None:
        """Mount the file system. Raises host.CommandFailed."""
        self._run(["mount", "-t", type_, *(["-o", options] if options else []), "--", source, path])

    @forwarded("mounts.unmount")
    def unmount(self, path: str) -> None:
        """Unmount the file system. Raises host.CommandFailed, for example if it is in use."""
        self._run(["umount", "--", path])

    def boot_id(self) -> str:
        """Return the id of this boot of the host's kernel; no mount outlives it."""
        return self._boot.read_text().strip()


    def _run(self, argv: list[str]) -> None:
        hosts, ours = (self._processes / pid / "ns/mnt" for pid in ("1", "self"))
        shielded = os.readlink(hosts) != os.readlink(ours)
        self._runner.run([*(["nsenter", f"--mount={hosts}", "--"] if shielded else []), *argv])


def _mark(path: str) -> Path:
    return Path(path + OURS)


def _plain(name: str) -> str:
    return ESCAPED.sub(lambda found: chr(int(found.group(1), 8)), name)
