"""Guests of the fake hypervisor: one record per guest, in memory and (so that guests outlive the service) in files."""

from __future__ import annotations

import contextlib
import errno
import logging
import os
import shutil
import threading
from collections.abc import Collection
from pathlib import Path

import msgspec

from nova import decoding
from nova.model.guest.orders import BuildOrder
from nova.model.numa.topology import TopologyClaim
from nova.model.server.states import PowerState

LOG = logging.getLogger(__name__)

CONSOLE_LINES = 1000  # limit of each guest's console


class FakeGuest(msgspec.Struct, kw_only=True):
    """Record of one guest. It is deleted when it has no definition, no disks, no taps and no volumes."""

    uuid: str
    name: str = ""
    instance_name: str = ""
    node: str = ""
    defined: bool = False
    power_state: int = PowerState.NOSTATE
    disks: list[str] = []
    taps: list[str] = []
    macs: list[str] = []  # of the taps, in the same order
    config_drive: dict[str, bytes] = {}
    console: list[str] = []
    vcpus: int = 0
    memory_mb: int = 0
    disk_gb: int = 0
    sizes: dict[str, int] = {}  # GB, of disks that have a size
    marks: dict[str, str] = {}  # disk -> text that a test wrote to it; it moves with the disk's data
    boots: int = 0  # number of boots; while it is unchanged, the guest's memory is unchanged
    saved: bool = False  # its memory is on a disk of the host
    rescue_image: str = ""  # image that it was booted from in place of its root disk
    rescue_drive: dict[str, bytes] = {}
    passwords: dict[str, str] = {}
    crashes: int = 0
    display: int = -1  # offset of its consoles' ports
    display_of: str = ""  # host and boot for which ``display`` is valid
    packing: TopologyClaim | None = None  # resources of the host's topology that it holds
    connected: dict[str, str] = {}  # volume -> kind of its connection
    given_up: tuple[str, ...] = ()  # volumes that it released after the detach timed out
    files: dict[str, tuple[str, ...]] = {}  # volume -> overlay files on its first file, the newest first
    replaced: dict[str, str] = {}  # volume -> the volume that replaced it and has its id
    volumes: dict[str, int] = {}  # volume -> size in GB, as the guest sees it
    source_copy: bool = False  # the guest left this host, and may come back
    order: BuildOrder | None = None  # the newest, without the facts for the first boot only
    arriving: bool = False  # prepared for a live migration; the source host may send it at any time

    @property
    def empty(self) -> bool:
        """True for a guest without definition, disks, taps and volumes. Such a record is not saved."""
        return not (self.defined or self.disks or self.taps or self.connected or self.source_copy)

    def drop_disks(self, keep: Collection[str] = ()) -> None:
        """Remove the disks, except those of the kinds to keep."""
        self.disks = [disk for disk in self.disks if disk.rstrip("0123456789") in keep]
        self.sizes = {disk: size for disk, size in self.sizes.items() if disk in self.disks}
        self.marks = {disk: mark for disk, mark in self.marks.items() if disk in self.disks}
        self.config_drive, self.rescue_image, self.rescue_drive = {}, "", {}
        self.disk_gb = sum(self.sizes.values())

    def say(self, line: str) -> None:
        """Write a line to the console."""
        self.console = [*self.console, line][-CONSOLE_LINES:]


class Store:
    """Guests by uuid. ``directory`` None: in memory only."""

    def __init__(self, directory: Path | None) -> None:
        self._directory = directory
        self._guests: dict[str, FakeGuest] = {}
        self.lock = threading.RLock()

    def load(self) -> None:
        """Load the guests that an earlier process saved."""
        if self._directory is None:
            return
        self._directory.mkdir(parents=True, exist_ok=True)
        for path in self._directory.glob("*.json"):
            try:
                guest = decoding.from_json(path.read_bytes(), FakeGuest)
            except msgspec.MsgspecError:
                LOG.error("%s is damaged and was skipped; remove it", path)
                continue
            self._guests[guest.uuid] = guest

    def all(self) -> list[FakeGuest]:
        """Return all records (not copies) in a new list."""
        with self.lock:
            return list(self._guests.values())

    def find(self, uuid: str) -> FakeGuest | None:
        """Return the record itself, not a copy; None if the guest is unknown."""
        return self._guests.get(uuid)

    def hand_over(self, guest: FakeGuest, target: Path) -> None:
        """Move the guest in its present state to ``target``, atomically, for the host that reads it."""
        with self.lock:
            own = self._directory / f"{guest.uuid}.json" if self._directory is not None else None
            if own is None:
                _save(target, guest)
            else:
                _save(own, guest)
                try:
                    os.replace(own, target)
                except OSError as error:
                    if error.errno != errno.EXDEV:
                        raise
                    shutil.move(own, target)
            self._guests.pop(guest.uuid, None)

    def keep(self, guest: FakeGuest) -> None:
        """Save the guest in its present state; an empty one is deleted."""
        if guest.empty:
            self._guests.pop(guest.uuid, None)
        else:
            self._guests[guest.uuid] = guest
        if self._directory is None:
            return
        path = self._directory / f"{guest.uuid}.json"
        if guest.empty:
            with contextlib.suppress(FileNotFoundError):
                path.unlink()
            return
        _save(path, guest)


def _save(path: Path, guest: FakeGuest) -> None:
    """Write the record so that readers, and a process after a kill, see the old or the new one as a whole."""
    fresh = path.with_suffix(".new")
    fresh.write_bytes(msgspec.json.encode(guest))
    os.replace(fresh, path)
