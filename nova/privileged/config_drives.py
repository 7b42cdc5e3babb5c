"""File system of a config drive, made from a directory by a sandboxed program: names and contents come from a user."""

from __future__ import annotations

import os
import shutil

from nova import errors
from nova.privileged.client import forwarded
from nova.privileged.opened_files import OpenedFile
from nova.privileged.runner import CommandRunner
from nova.privileged.sandbox import ToolFiles, make_empty, sandboxed

LABEL = "config-2"
VFAT_BYTES = 64 << 20
#: Programs that make an ISO 9660 file system, in order of preference; all take the same arguments.
ISO_MAKERS = ("xorrisofs", "genisoimage", "mkisofs")


@forwarded("config_drives.make_iso", local=("runner",))
def make_iso(runner: CommandRunner, tree: str, target: str) -> None:
    """Make an ISO 9660 file system of the directory. Raises host.NoIsoMaker, host.CommandFailed."""
    maker = next((program for program in ISO_MAKERS if shutil.which(program)), None)
    if maker is None:
        raise errors.host.NoIsoMaker(programs=", ".join(ISO_MAKERS))
    _run(runner, iso_argv(maker, tree, target), tree, target)


@forwarded("config_drives.make_vfat", local=("runner",))
def make_vfat(runner: CommandRunner, tree: str, target: str) -> None:
    """Make a VFAT file system of the directory. Raises host.CommandFailed."""
    place = tree.place if isinstance(tree, OpenedFile) else tree
    for argv in vfat_argvs(sorted(os.listdir(place)), tree, target):
        _run(runner, argv, tree, target)


def iso_argv(maker: str, tree: str, target: str) -> list[str]:
    """Return the command that makes ``target`` from the directory ``tree``: an ISO 9660 image with Joliet and Rock
    Ridge names and the volume label config-2. ``maker`` is a program of ``ISO_MAKERS`` (genisoimage(1))."""
    return [maker, "-quiet", "-J", "-r", "-l", "-ldots", "-allow-lowercase", "-allow-multidot", "-V", LABEL,
            "-publisher", "OpenStack Nova", "-o", target, tree]


def vfat_argvs(entries: list[str], tree: str, target: str) -> list[list[str]]:
    """Return the commands of mtools that write into the file without mounting it; ``::`` is its root directory."""
    sectors = str(VFAT_BYTES // 512)
    return [["mformat", "-C", "-i", target, "-v", LABEL, "-T", sectors, "-h", "64", "-s", "32", "::"],
            ["mcopy", "-s", "-Q", "-i", target, *(f"{tree}/{entry}" for entry in entries), "::/"]]


def _run(runner: CommandRunner, argv: list[str], tree: str, target: str) -> None:
    make_empty(target)
    runner.run(sandboxed(argv, ToolFiles(read=(tree,), write=(target,))))


__all__ = ["ISO_MAKERS", "LABEL", "VFAT_BYTES", "iso_argv", "make_iso", "make_vfat", "vfat_argvs"]
