"""What is kept beside each guest: ``instances_path/<uuid>/``.

``order.json`` is the newest order without its secrets, ``disks.json`` what disks were made and in which format (so that
no format is ever guessed), ``plugged.json`` what was plugged. All are readable by root alone.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import uuid
from pathlib import Path
from typing import TypeVar

import msgspec

from nova import concurrency
from nova.model.base import Value
from nova.model.orders import BuildOrder

T = TypeVar("T")


class DiskRecord(Value):
    """A disk as it was made. ``name`` is its file beside the guest; ``backing`` the file an overlay lies over."""

    kind: str  # root, ephemeral, swap, config
    index: int = 0
    name: str
    format: str
    size_bytes: int
    device: str = "disk"
    backing: str | None = None
    backing_format: str | None = None


class PlugRecord(Value):
    """An interface as it was plugged."""

    id: str
    device: str
    bridge: str


class Folder:
    """One guest's."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def file(self, name: str) -> Path:
        return self.path / name

    def exists(self) -> bool:
        return self.path.is_dir()

    def make(self) -> None:
        self.path.mkdir(mode=0o711, parents=True, exist_ok=True)
        self.path.chmod(0o711)  # QEMU's user may open the disks it is told of; nobody may list

    def remove(self) -> None:
        """With all that is in it. Nothing when it is not there."""
        if self.exists():
            concurrency.run_in_thread(shutil.rmtree, self.path)

    def order(self) -> BuildOrder | None:
        return self._read("order.json", BuildOrder)

    def keep_order(self, order: BuildOrder) -> None:
        """Without what only the first boot needs to know."""
        self._write("order.json", msgspec.structs.replace(order, admin_password=None, user_data=None, files={}))

    def disks(self) -> tuple[DiskRecord, ...]:
        return self._read("disks.json", tuple[DiskRecord, ...]) or ()

    def keep_disks(self, disks: tuple[DiskRecord, ...]) -> None:
        self._write("disks.json", disks)

    def plugs(self) -> tuple[PlugRecord, ...]:
        return self._read("plugged.json", tuple[PlugRecord, ...]) or ()

    def keep_plugs(self, plugs: tuple[PlugRecord, ...]) -> None:
        self._write("plugged.json", plugs)

    def _read(self, name: str, kind: type[T]) -> T | None:
        try:
            return msgspec.json.decode(self.file(name).read_bytes(), type=kind)
        except (FileNotFoundError, NotADirectoryError, msgspec.DecodeError):
            return None

    def _write(self, name: str, content: object) -> None:
        """Whole or not at all: a reader, and we after a kill, see the old or the new."""
        descriptor, fresh = tempfile.mkstemp(prefix=f".{name}.", dir=self.path)
        with os.fdopen(descriptor, "wb") as target:
            target.write(msgspec.json.encode(content))
        os.replace(fresh, self.file(name))


class Folders:
    """All guests' of this host, below ``instances_path``."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def of(self, server_uuid: str) -> Folder:
        """The guest's folder; ValueError when ``server_uuid`` is no uuid in its usual form (it becomes a path)."""
        if str(uuid.UUID(server_uuid)) != server_uuid:
            raise ValueError(f"{server_uuid!r} is no uuid")
        return Folder(self.root / server_uuid)

    def uuids(self) -> tuple[str, ...]:
        """Of every folder that is a guest's by its name."""
        if not self.root.is_dir():
            return ()
        return tuple(sorted(entry.name for entry in os.scandir(self.root) if entry.is_dir() and _is_uuid(entry.name)))


def _is_uuid(name: str) -> bool:
    try:
        return str(uuid.UUID(name)) == name
    except ValueError:
        return False
