"""Live migration of fake guests between hosts.

A destination that is ready for a guest has a directory for its arrival. The source writes to it that the guest is
coming (``coming``, with the process id). At the end it renames the guest's record into the directory, which moves the
guest atomically. A destination that cancelled has removed the directory, so the guest stays.
"""

from __future__ import annotations

import contextlib
import os
import shutil
from pathlib import Path

from nova import decoding
from nova.devel.fake.hypervisor import FakeHypervisor, file_name
from nova.devel.fake.store import FakeGuest
from nova.model.server.states import PowerState

ARRIVALS, COMING, ARRIVED = "arrivals", "coming", "guest.json"


class Arrivals:
    def __init__(self, hypervisor: FakeHypervisor) -> None:
        self._hypervisor = hypervisor

    def folder(self, server_uuid: str) -> Path:
        """Return the directory for this guest's arrival, without creating it."""
        return self._hypervisor.folder(ARRIVALS) / file_name(server_uuid)

    def drop(self, server_uuid: str) -> None:
        if self._hypervisor.room is not None:
            shutil.rmtree(self.folder(server_uuid), ignore_errors=True)

    def absorb(self, server_uuid: str) -> None:
        """Take over a guest that has arrived."""
        waiting = self._hypervisor.store.find(server_uuid)
        if waiting is None or not waiting.arriving:
            return
        folder = self.folder(server_uuid)
        with self._hypervisor.store.lock:
            try:
                arrived = decoding.from_json((folder / ARRIVED).read_bytes(), FakeGuest)
            except FileNotFoundError:
                return
            arrived.arriving, arrived.taps, arrived.macs = False, waiting.taps, waiting.macs
            arrived.node, arrived.packing = waiting.node, waiting.packing
            arrived.connected = waiting.connected
            self._hypervisor.store.keep(arrived)
            shutil.rmtree(folder, ignore_errors=True)
        self._hypervisor.notify(server_uuid, PowerState(arrived.power_state))

    def is_coming(self, server_uuid: str) -> bool:
        """Return whether a live process announced the guest."""
        with contextlib.suppress(FileNotFoundError, ValueError, ProcessLookupError):
            pid = int((self.folder(server_uuid) / COMING).read_text())
            os.kill(pid, 0)
            return True
        return False
