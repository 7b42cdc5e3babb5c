"""The config drive: files as a CD (ISO 9660) or a small FAT disk, labelled config-2. No kernel help is needed."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from pathlib import Path, PurePosixPath

from nova import errors
from nova.privileged import config_drives
from nova.privileged.config_drives import LABEL
from nova.privileged.runner import CommandRunner

VOLUME_LABEL = b"\x08"  # what a FAT directory's entry is, by its attributes


class ConfigDrive:
    """Writes drives of ``limit_mb`` at most; ``image_format`` is iso9660 or vfat."""

    def __init__(self, image_format: str, limit_mb: int, runner: CommandRunner) -> None:
        self._format, self._limit, self._runner = image_format, limit_mb << 20, runner

    def write(self, target: Path, files: Mapping[str, bytes]) -> int:
        """Make ``target`` (0600) anew, whole or not at all; its length in bytes."""
        size = sum(len(content) for content in files.values())
        if size > self._limit:
            raise errors.guest.ConfigDriveTooBig(bytes=size, limit=self._limit)
        part = target.with_name(f"{target.name}.part")
        part.unlink(missing_ok=True)
        try:
            with tempfile.TemporaryDirectory(prefix=".config-", dir=target.parent) as tree:  # 0700: it has secrets
                _lay_out(Path(tree), files)
                if self._format == "vfat":
                    config_drives.make_vfat(self._runner, tree, str(part))
                    _label_in_small_letters(part)
                else:
                    config_drives.make_iso(self._runner, tree, str(part))
            part.chmod(0o600)
            with part.open("rb") as made:
                os.fsync(made.fileno())  # else a host that loses power may keep the name and not what is in it
            os.replace(part, target)
        finally:
            part.unlink(missing_ok=True)
        return target.stat().st_size


def _label_in_small_letters(image: Path) -> None:
    """mtools write a label in capitals, and guests look for this one as it is spelled: the root directory's entry for
    it (11 bytes of name, then what it is) comes within the first megabyte."""
    with image.open("r+b") as file:
        start = file.read(1 << 20).find(f"{LABEL.upper():<11}".encode() + VOLUME_LABEL)
        if start >= 0:
            file.seek(start)
            file.write(LABEL.encode())


def _lay_out(tree: Path, files: Mapping[str, bytes]) -> None:
    for name, content in files.items():
        path = PurePosixPath(name)
        if not path.parts or path.is_absolute() or ".." in path.parts:
            raise errors.guest.ConfigDrivePath(path=name)
        target = tree.joinpath(*path.parts)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content)
