"""The config drive: files as a CD (ISO 9660) or a small FAT disk, labelled config-2. It needs no kernel support."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from pathlib import Path, PurePosixPath

from nova import errors
from nova.privileged import config_drives
from nova.privileged.config_drives import LABEL
from nova.privileged.runner import CommandRunner

VOLUME_LABEL = b"\x08"  # the attributes of a FAT directory entry that is the volume label


class ConfigDrive:
    """Writer of drives of at most ``limit_mb``; ``image_format`` is iso9660 or vfat."""

    def __init__(self, image_format: str, limit_mb: int, runner: CommandRunner) -> None:
        self._format, self._limit, self._runner = image_format, limit_mb << 20, runner

    def write(self, target: Path, files: Mapping[str, bytes]) -> int:
        """Create or replace ``target`` (0600) atomically; return its length in bytes."""
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
                os.fsync(made.fileno())  # otherwise a power loss may leave the name with no content
            os.replace(part, target)
        finally:
            part.unlink(missing_ok=True)
        return target.stat().st_size


def _label_in_small_letters(image: Path) -> None:
    """Write the label in lower case: mtools write it in upper case, and guests compare it exactly. The label's entry in
    the root directory (11 bytes of name, then the attributes) is within the first megabyte."""
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
