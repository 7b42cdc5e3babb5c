"""What the fake hypervisor has: one record a guest, in memory and (so that guests outlive the daemon) in files."""

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
from nova.model.numa.topology import Packing
from nova.model.server.states import PowerState

LOG = logging.getLogger(__name__)

CONSOLE_LINES = 1000  # kept of each guest's console


class FakeGuest(msgspec.Struct, kw_only=True):
    """All there is of one guest: nothing is left of it when it has no definition, no disks, no taps and no volumes."""

    uuid: str
    name: str = ""
    instance_name: str = ""
    node: str = ""
    defined: bool = False
    power_state: int = PowerState.NOSTATE
    disks: list[str] = []
    taps: list[str] = []
    macs: list[str] = []  # of the taps, in their order
    config_drive: dict[str, bytes] = {}
    console: list[str] = []
    vcpus: int = 0
    memory_mb: int = 0
    disk_gb: int = 0
    sizes: dict[str, int] = {}  # GB, of the disks that have one
    marks: dict[str, str] = {}  # disk -> what a test wrote to it: it comes along wherever the disk's data does
    boots: int = 0  # how often it booted: its memory lives on while this stays the same
    saved: bool = False  # its memory is on a disk of the host
    rescue_image: str = ""  # what it was booted from instead of its root disk
    rescue_drive: dict[str, bytes] = {}
    passwords: dict[str, str] = {}
    crashes: int = 0
    display: int = -1  # what its consoles' ports are counted by
    display_of: str = ""  # the host and boot that it is of
    packing: Packing | None = None  # what it holds of the host's topology
    connected: dict[str, str] = {}  # volume -> what its host reaches it by
    given_up: tuple[str, ...] = ()  # volumes that it let go of later than it was asked to
    files: dict[str, tuple[str, ...]] = {}  # volume -> files that lie over its first one, the newest first
    replaced: dict[str, str] = {}  # volume -> the one that took its place and its id
    volumes: dict[str, int] = {}  # volume -> size in GB, as the guest sees it
    source_copy: bool = False  # it left, and may come back
    order: BuildOrder | None = None  # the newest, without what only the first boot needs
    arriving: bool = False  # room was made for it, and its old host may send it at any time

    @property
    def empty(self) -> bool:
        """Whether nothing is left of the guest: no definition, no disks, no taps, no volumes. Such a record is not
        kept."""
        return not (self.defined or self.disks or self.taps or self.connected or self.source_copy)

    def drop_disks(self, keep: Collection[str] = ()) -> None:
        """Take the disks away, but for the kinds that stay."""
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
        """Find again what an earlier process left running."""
        if self._directory is None:
            return
        self._directory.mkdir(parents=True, exist_ok=True)
        for path in self._directory.glob("*.json"):
            try:
                guest = decoding.from_json(path.read_bytes(), FakeGuest)
            except msgspec.MsgspecError:
                LOG.error("%s is damaged and left out: remove it", path)
                continue
            self._guests[guest.uuid] = guest

    def all(self) -> list[FakeGuest]:
        """Of every guest, the kept record itself; the list is the caller's own."""
        with self.lock:
            return list(self._guests.values())

    def find(self, uuid: str) -> FakeGuest | None:
        """The kept record itself, not a copy; None when there is none."""
        return self._guests.get(uuid)

    def hand_over(self, guest: FakeGuest, target: Path) -> None:
        """Give the guest away, as it is now, to whoever reads ``target``: at one moment it is there and not here."""
        with self.lock:
            own = self._directory / f"{guest.uuid}.json" if self._directory is not None else None
            fresh = target.with_suffix(".new") if own is None else own
            fresh.write_bytes(msgspec.json.encode(guest))
            try:
                os.replace(fresh, target)
            except OSError as error:
                if error.errno != errno.EXDEV:
                    raise
                shutil.move(fresh, target)
            self._guests.pop(guest.uuid, None)

    def keep(self, guest: FakeGuest) -> None:
        """Keep the guest as it is now; an empty one is forgotten."""
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
        fresh = path.with_suffix(".new")
        fresh.write_bytes(msgspec.json.encode(guest))
        os.replace(fresh, path)
