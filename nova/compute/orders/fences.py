"""Fences: the newest epoch that this host has seen of each server, in a file that outlives the guest for a while.

Every operation on a server has an epoch; newer operations have greater ones. An order with an older epoch than the
file's comes from a superseded conductor, however long the broker held it, and has no effect here.
"""

from __future__ import annotations

import contextlib
import datetime
import logging
import os
import threading
from collections import OrderedDict
from collections.abc import Container
from pathlib import Path

import msgspec

from nova import decoding, errors, failures
from nova.compute.host import HostClock, checked_uuid, replace_file
from nova.model.base import Time, Value

LOG = logging.getLogger(__name__)

KEPT_AFTER_GONE = datetime.timedelta(days=1)  # longer than any broker or conductor holds an order
KEPT_IN_MEMORY = 1000  # servers with the most recent orders; the files of others are read again


class FenceFile(Value):
    """The content of a fence file: the newest epoch seen, and the epochs of the last build and the last destroy (-1:
    none)."""

    epoch: int = -1
    built: int = -1
    destroyed: int = -1
    at: Time | None = None  # time of writing


class Fences:
    """The fence files, with copies of recent ones in memory. One process owns the directory (``identity.Lock`` ensures
    that).

    ``kept``: how long a file stays after its guest is gone.
    """

    def __init__(self, directory: Path, clock: HostClock, kept: datetime.timedelta = KEPT_AFTER_GONE) -> None:
        self._directory, self._clock, self._kept = directory, clock, kept
        self._known: OrderedDict[str, FenceFile] = OrderedDict()
        self._lock = threading.RLock()
        directory.mkdir(parents=True, exist_ok=True)

    def known(self, server_uuid: str) -> FenceFile:
        """Return the fence of a server; its epochs are -1 if there is none. Raises Invalid if the UUID is not valid."""
        with self._lock:
            if server_uuid not in self._known:
                found = self._read(checked_uuid(server_uuid))
                if found == FenceFile():
                    return found  # not cached: UUIDs of unknown servers must not fill the memory
                self._remember(server_uuid, found)
            return self._known[server_uuid]

    def check(self, server_uuid: str, epoch: int) -> FenceFile:
        """Return the fence if the epoch is current; raise host.OrderOvertaken if a newer one was seen."""
        known = self.known(server_uuid)
        if epoch < known.epoch:
            raise errors.host.OrderOvertaken(uuid=server_uuid, newest=known.epoch, epoch=epoch)
        return known

    def note(self, server_uuid: str, epoch: int, built: bool = False, destroyed: bool = False) -> None:
        """Record an order of this epoch. ``built``/``destroyed``: the order creates or removes the guest."""
        with self._lock:
            known = self.known(server_uuid)
            fresh = FenceFile(epoch=max(epoch, known.epoch), built=epoch if built else known.built,
                              destroyed=max(epoch, known.destroyed) if destroyed else known.destroyed, at=known.at)
            if fresh != known or destroyed:
                self._write(server_uuid, fresh)

    def expire(self, here: Container[str]) -> int:
        """Drop expired fences of servers that are not ``here``, and return their number."""
        dropped, limit = 0, self._clock.now() - self._kept
        with os.scandir(self._directory) as files:  # one by one: there may be thousands
            for file in files:
                # a file whose name is not a UUID does not belong to nova, and stays
                if file.name not in here and not file.name.startswith("."):
                    with contextlib.suppress(errors.host.OrderBadUuid):
                        dropped += self._expire(checked_uuid(file.name), limit)
        return dropped

    def _expire(self, server_uuid: str, limit: Time) -> bool:
        """Drop the fence if it is older than the limit; return whether it was."""
        with self._lock:
            at = (self._known.get(server_uuid) or self._read(server_uuid)).at
            if at is not None and at >= limit:
                return False
            (self._directory / server_uuid).unlink(missing_ok=True)
            self._known.pop(server_uuid, None)
            return True

    def _read(self, server_uuid: str) -> FenceFile:
        path = self._directory / server_uuid
        with contextlib.suppress(FileNotFoundError), failures.expected(
                LOG, "the fence file %s is damaged and treated as absent; the conductor is still asked before each "
                     "point of no return", path, on=msgspec.MsgspecError, level=logging.ERROR):
            return decoding.from_json(path.read_bytes(), FenceFile)
        return FenceFile()

    def _write(self, server_uuid: str, known: FenceFile) -> None:
        known = msgspec.structs.replace(known, at=self._clock.now())
        replace_file(self._directory / server_uuid, msgspec.json.encode(known))
        self._remember(server_uuid, known)

    def _remember(self, server_uuid: str, known: FenceFile) -> None:
        self._known[server_uuid] = known
        self._known.move_to_end(server_uuid)
        if len(self._known) > KEPT_IN_MEMORY:
            self._known.popitem(last=False)
