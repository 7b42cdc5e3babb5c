"""What keeps guests' disks: one small interface, one module a kind."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple, Protocol

from nova.virt.image_clones import CloneParent
from nova.virt.libvirt.disks.folders import Folder
from nova.virt.libvirt.disks.plan import Base
from nova.virt.libvirt.disks.records import DiskRecord


class Format(NamedTuple):
    """A file system to make on an empty disk."""

    name: str
    label: str


class Space(NamedTuple):
    total_bytes: int
    free_bytes: int


class Backend(Protocol):
    """Each disk appears whole, by one rename; each call may be repeated. HostRefused when there is no space."""

    #: Whether other hosts see the same disks, so that a move takes none along.
    shared: bool

    def exists(self, folder: Folder, disk: DiskRecord) -> bool:
        """Whether the whole disk is there. What is half made has another name, and does not count."""

    def create_root(self, folder: Folder, disk: DiskRecord, base: Base | None) -> None:
        """A disk that shows ``base`` (None: nothing), of the record's size."""

    def create_empty(self, folder: Folder, disk: DiskRecord, wanted: Format) -> None:
        """A formatted disk."""

    def own(self, folder: Folder, disk: DiskRecord) -> None:
        """The disk is this host's from now on: where hosts see each other's, no other one removes it."""

    def grow(self, folder: Folder, disk: DiskRecord) -> None:
        """To the record's size."""

    def source(self, folder: Folder, disk: DiskRecord) -> str:
        """What qemu-img reads it by, in the record's format: a file, a device, an address."""

    def remove(self, folder: Folder, disk: DiskRecord) -> None:
        """With what was made of it before it was whole. Nothing when it is not there, or another host's."""

    def space(self) -> Space:
        """Bytes of the place where new disks are kept: all, and those that are free."""


class PooledBackend(Backend, Protocol):
    """A back end whose disks all hosts see. Each call may be repeated."""

    def create_clone(self, folder: Folder, disk: DiskRecord, parent: CloneParent, whole: bool) -> None:
        """A disk that shows an image of the image service's, of the record's size. ``whole``: it has a copy of all that
        it shows, so that the image may go."""

    def replace(self, folder: Folder, disk: DiskRecord, file: Path) -> None:
        """The disk has the content of a raw file from now on, and is this host's."""

    def keep(self, folder: Folder, disk: DiskRecord) -> None:
        """Remember what it has now. Until ``take_back`` or ``let_go`` no host removes it."""

    def take_back(self, folder: Folder, disk: DiskRecord) -> None:
        """It is this host's, as it was when it was kept."""

    def let_go(self, folder: Folder, disk: DiskRecord, used: bool) -> None:
        """It need not be kept. It goes if it is nobody else's by now, and not ``used`` here."""

    def disown(self, folder: Folder, disk: DiskRecord) -> None:
        """It is this host's no more. Nothing when it is another's."""

    def renew(self, folder: Folder, disk: DiskRecord) -> None:
        """Remove one of another size, by the same name."""
