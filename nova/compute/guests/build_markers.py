"""Marks of guests that are being built: a file each, there from before the first disk until the guest has started.

A kill in between leaves the mark: the order, when it comes again, builds on; a guest without the mark is finished.
A second folder of them marks the source copies of guests that left: by which operation.
"""

from __future__ import annotations

from pathlib import Path

import msgspec

from nova import decoding
from nova.compute.host import checked_uuid, replace_file
from nova.model.base import Value
from nova.model.guest.orders import BuildOrder, Fence, GuestOrder


class Mark(Value):
    """Whose half-built guest it is."""

    operation_id: int
    epoch: int
    instance_name: str
    beside: bool = False  # of a source copy: the same move made it anew on this very host
    own_disks: bool = False  # of one that is to arrive: its disks here are copies, on storage of this host's own
    live: bool = False  # it arrives running: once it does, its disks here are its only ones


class Markers:
    def __init__(self, directory: Path) -> None:
        self._directory = directory
        directory.mkdir(parents=True, exist_ok=True)

    def set(self, order: BuildOrder | GuestOrder, fence: Fence | None = None, **more: bool) -> None:
        """``fence``: the order's that ``order`` is a part of."""
        fence = fence or order.fence
        mark = Mark(operation_id=fence.operation_id, epoch=fence.epoch, instance_name=order.instance_name, **more)
        replace_file(self._directory / checked_uuid(order.server_uuid), msgspec.json.encode(mark))

    def get(self, server_uuid: str) -> Mark | None:
        """None when there is none, or one that can't be read."""
        try:
            return decoding.from_json((self._directory / checked_uuid(server_uuid)).read_bytes(), Mark)
        except (FileNotFoundError, msgspec.MsgspecError):
            return None

    def has(self, server_uuid: str) -> bool:
        """Whether there is a mark, be it a mark that cannot be read."""
        return (self._directory / checked_uuid(server_uuid)).exists()

    def clear(self, server_uuid: str) -> None:
        """Take the mark away. Nothing when there is none."""
        (self._directory / checked_uuid(server_uuid)).unlink(missing_ok=True)

    def all(self) -> tuple[str, ...]:
        """Uuids of all half-built guests."""
        return tuple(path.name for path in self._directory.iterdir() if not path.name.startswith("."))
