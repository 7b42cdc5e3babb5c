"""File systems on ephemeral and swap disks: a closed set of names, and the command of each."""

from __future__ import annotations

from nova import errors
from nova.privileged.client import forwarded
from nova.privileged.runner import CommandRunner
from nova.privileged.sandbox import ToolFiles, sandboxed

COMMANDS: dict[str, tuple[str, ...]] = {
    "ext2": ("mkfs.ext2", "-q", "-F", "-L"),
    "ext3": ("mkfs.ext3", "-q", "-F", "-L"),
    "ext4": ("mkfs.ext4", "-q", "-F", "-L"),
    "xfs": ("mkfs.xfs", "-q", "-f", "-L"),
    "vfat": ("mkfs.vfat", "-n"),
    "swap": ("mkswap", "-L"),
}
BY_SYSTEM = {"windows": "vfat", "linux": "ext4"}
DEFAULT = "ext4"


def choose(kind: str, asked: str | None, configured: str | None, os_type: str | None) -> str:
    """Return the file system: the request's choice, the operator's, or the default of the image's operating system."""
    if kind == "swap":
        return "swap"
    return asked or configured or BY_SYSTEM.get(os_type or "", DEFAULT)


def label(kind: str, index: int) -> str:
    """Return the volume label by which a guest finds the disk: swap, ephemeral0, ephemeral1 and so on."""
    return "swap" if kind == "swap" else f"ephemeral{index}"


@forwarded("filesystems.make", local=("runner",))
def make(runner: CommandRunner, filesystem: str, label_: str, path: str) -> None:
    """Make the file system in an existing file or device. Raises guest.DiskFilesystem, host.CommandFailed."""
    runner.run(sandboxed(argv(filesystem, label_, path), ToolFiles(write=(path,))))


def argv(filesystem: str, label_: str, path: str) -> list[str]:
    """Return the command that makes the file system in an existing file or device (mkfs(8), mkswap(8)). Raises
    guest.DiskFilesystem if the name is not supported."""
    if filesystem not in COMMANDS:
        raise errors.guest.DiskFilesystem(name=filesystem, known=", ".join(sorted(COMMANDS)))
    return [*COMMANDS[filesystem], label_, path]
