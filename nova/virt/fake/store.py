"""What the fake hypervisor has: one record a guest, in memory and (so that guests outlive the daemon) in files."""

from __future__ import annotations

import contextlib
import logging
import os
import threading
from pathlib import Path

import msgspec

from nova.model.states import PowerState

LOG = logging.getLogger(__name__)

CONSOLE_LINES = 1000  # kept of each guest's console


class FakeGuest(msgspec.Struct, kw_only=True):
    """All there is of one guest: nothing is left of it when it has no definition, no disks and no taps."""

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

    @property
    def empty(self) -> bool:
        return not (self.defined or self.disks or self.taps)

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
                guest = msgspec.json.decode(path.read_bytes(), type=FakeGuest)
            except msgspec.MsgspecError:
                LOG.error("%s is damaged and left out: remove it", path)
                continue
            self._guests[guest.uuid] = guest

    def all(self) -> list[FakeGuest]:
        with self.lock:
            return list(self._guests.values())

    def find(self, uuid: str) -> FakeGuest | None:
        return self._guests.get(uuid)

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
