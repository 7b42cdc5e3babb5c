"""File systems of others, mounted on this host: mount(8) and umount(8), as argument lists.

A daemon that systemd shields sees the host's mounts, and what it mounts itself nobody else sees: not QEMU either. So
the programs run where the host's first process is.
"""

from __future__ import annotations

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
ESCAPED = re.compile(r"\\([0-7]{3})")  # as the kernel writes blanks and the like in names: proc(5)


class Mounts:
    def __init__(self, runner: CommandRunner, table: Path = TABLE, boot: Path = BOOT,
                 processes: Path = PROCESSES) -> None:
        self._runner, self._table, self._boot, self._processes = runner, table, boot, processes

    def has(self, path: str) -> bool:
        """Whether anything is mounted on the path. It asks the kernel alone: a server that is down keeps nobody
        waiting."""
        lines = self._table.read_text(errors="surrogateescape").splitlines()
        return any(_plain(line.split(" ")[4]) == path for line in lines)

    def is_ours(self, path: str) -> bool | None:
        """Whether this host's daemon has mounted what is mounted on the path, or was about to, in this run of the
        kernel, which no mount outlives; None: it never was."""
        try:
            return _mark(path).read_text() == self.boot_id()
        except FileNotFoundError:
            return None

    @forwarded("mounts.prepare")
    def prepare(self, path: str) -> None:
        """Have the mount point, and a mark beside it that says it is ours. OSError."""
        Path(path).mkdir(parents=True, exist_ok=True)
        _mark(path).write_text(self.boot_id())

    @forwarded("mounts.forget")
    def forget(self, path: str) -> None:
        """The mount point, which has nothing mounted on it, and our mark. Files in it are somebody else's, and stay."""
        try:
            Path(path).rmdir()
        except OSError as error:
            LOG.info("the folder %s stays: %s", path, error.strerror)
        self.forget_mark(path)

    @forwarded("mounts.forget_mark")
    def forget_mark(self, path: str) -> None:
        """What is mounted there is somebody else's."""
        _mark(path).unlink(missing_ok=True)

    @forwarded("mounts.mount")
    def mount(self, source: str, path: str, type_: str, options: str = "") -> None:
        """host.CommandFailed."""
        self._run(["mount", "-t", type_, *(["-o", options] if options else []), "--", source, path])

    @forwarded("mounts.unmount")
    def unmount(self, path: str) -> None:
        """host.CommandFailed: it is in use, say."""
        self._run(["umount", "--", path])

    def boot_id(self) -> str:
        """Of this run of the host's kernel: no mount outlives it."""
        return self._boot.read_text().strip()


    def _run(self, argv: list[str]) -> None:
        hosts, ours = (self._processes / pid / "ns/mnt" for pid in ("1", "self"))
        shielded = os.readlink(hosts) != os.readlink(ours)
        self._runner.run([*(["nsenter", f"--mount={hosts}", "--"] if shielded else []), *argv])


def _mark(path: str) -> Path:
    return Path(path + OURS)


def _plain(name: str) -> str:
    return ESCAPED.sub(lambda found: chr(int(found.group(1), 8)), name)
