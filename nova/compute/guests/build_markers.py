"""Marks of guests that are being built: a file for each, from before the first disk until the guest has started.

The mark survives a kill. If the order arrives again, it continues the build; a guest without the mark is finished. A
second directory marks the source copies of guests that left, with the operation that kept them.
"""

from __future__ import annotations

import contextlib
from pathlib import Path

import msgspec

from nova import decoding
from nova.compute.host import checked_uuid, replace_file
from nova.model.base import Value
from nova.model.guest.orders import BuildOrder, Fence, GuestOrder


class Mark(Value):
    """The order that a half-built guest belongs to."""

    operation_id: int
    epoch: int
    instance_name: str
    beside: bool = False  # source copy: the same move recreated the guest on this host
    own_disks: bool = False  # incoming guest: its disks here are copies, on storage that this host does not share
    live: bool = False  # incoming live migration: after it, the disks here are the guest's only disks


class BuildMarkers:
    def __init__(self, directory: Path) -> None:
        self._directory = directory
        directory.mkdir(parents=True, exist_ok=True)

    def set(self, order: BuildOrder | GuestOrder, fence: Fence | None = None, **more: bool) -> None:
        """Write the mark. ``fence``: the fence of the order that ``order`` is a part of."""
        fence = fence or order.fence
        mark = Mark(operation_id=fence.operation_id, epoch=fence.epoch, instance_name=order.instance_name, **more)
        replace_file(self._directory / checked_uuid(order.server_uuid), msgspec.json.encode(mark))

    def get(self, server_uuid: str) -> Mark | None:
        """Return the mark; None if there is none, or if it cannot be read."""
        with contextlib.suppress(FileNotFoundError, msgspec.MsgspecError):
            return decoding.from_json((self._directory / checked_uuid(server_uuid)).read_bytes(), Mark)
        return None

    def has(self, server_uuid: str) -> bool:
        """True if there is a mark, even if it cannot be read."""
        return (self._directory / checked_uuid(server_uuid)).exists()

    def clear(self, server_uuid: str) -> None:
        """Remove the mark, if there is one."""
        (self._directory / checked_uuid(server_uuid)).unlink(missing_ok=True)

    def all(self) -> tuple[str, ...]:
        """Return the UUIDs of all half-built guests."""
        return tuple(path.name for path in self._directory.iterdir() if not path.name.startswith("."))
