"""The interface of disk back ends, with one module for each kind."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple, Protocol

from nova.virt.image_clones import CloneParent
from nova.virt.libvirt.disks.folders import Folder
from nova.virt.libvirt.disks.plan import Base
from nova.virt.libvirt.disks.records import DiskRecord


class Format(NamedTuple):
    """A file system to create on an empty disk."""

    name: str
    label: str


class Space(NamedTuple):
    total_bytes: int
    free_bytes: int


class Backend(Protocol):
    """A disk back end. Each disk is created atomically, by a rename. Calls are safe to repeat, and raise HostRefused if
    there is no space."""

    #: Whether other hosts see the same disks, so that a move copies none.
    shared: bool

    def exists(self, folder: Folder, disk: DiskRecord) -> bool:
        """Return whether the complete disk exists. An incomplete one has another name, and does not count."""

    def create_root(self, folder: Folder, disk: DiskRecord, base: Base | None) -> None:
        """Create a disk with the content of ``base`` (None: empty), of the record's size."""

    def create_empty(self, folder: Folder, disk: DiskRecord, wanted: Format) -> None:
        """Create a formatted disk."""

    def own(self, folder: Folder, disk: DiskRecord) -> None:
        """Make this host the disk's owner: other hosts that see the disk do not remove it."""

    def grow(self, folder: Folder, disk: DiskRecord) -> None:
        """Grow the disk to the record's size."""

    def source(self, folder: Folder, disk: DiskRecord) -> str:
        """Return the name by which qemu-img reads it, in the record's format: a file, a device, an address."""

    def remove(self, folder: Folder, disk: DiskRecord) -> None:
        """Remove the disk and incomplete versions of it. Does nothing if it does not exist, or is another host's."""

    def space(self) -> Space:
        """Return the bytes of the storage for new disks: total and free."""


class PooledBackend(Backend, Protocol):
    """A back end whose disks all hosts share. Calls are safe to repeat."""

    def create_clone(self, folder: Folder, disk: DiskRecord, parent: CloneParent, whole: bool) -> None:
        """Create a disk as a clone of an image of the image service, of the record's size. ``whole``: it has a copy of
        all data, so that the image may be removed."""

    def replace(self, folder: Folder, disk: DiskRecord, file: Path) -> None:
        """Replace the disk's content with that of a raw file, and make this host its owner."""

    def keep(self, folder: Folder, disk: DiskRecord) -> None:
        """Keep the disk's current state. Until ``take_back`` or ``release``, no host removes the disk."""

    def take_back(self, folder: Folder, disk: DiskRecord) -> None:
        """Restore the kept state, and make this host the disk's owner."""

    def release(self, folder: Folder, disk: DiskRecord, used: bool) -> None:
        """Drop the kept state. Removes the disk if no other host owns it and it is not ``used`` here."""

    def clear_owner(self, folder: Folder, disk: DiskRecord) -> None:
        """End this host's ownership of the disk. Does nothing if it is another host's."""

    def renew(self, folder: Folder, disk: DiskRecord) -> None:
        """Remove a disk of the same name and another size."""
