"""Marks of guests that are being built: a file each, there from before the first disk until the guest has started.

A kill in between leaves the mark: the order, when it comes again, builds on; a guest without the mark is finished.
"""

from __future__ import annotations

from pathlib import Path

import msgspec

from nova.compute.host import checked_uuid, replace_file
from nova.model.base import Value
from nova.model.orders import BuildOrder


class Mark(Value):
    """Whose half-built guest it is."""

    operation_id: int
    epoch: int
    instance_name: str


class Markers:
    def __init__(self, directory: Path) -> None:
        self._directory = directory
        directory.mkdir(parents=True, exist_ok=True)

    def set(self, order: BuildOrder) -> None:
        mark = Mark(operation_id=order.fence.operation_id, epoch=order.fence.epoch, instance_name=order.instance_name)
        replace_file(self._directory / checked_uuid(order.server_uuid), msgspec.json.encode(mark))

    def has(self, server_uuid: str) -> bool:
        return (self._directory / checked_uuid(server_uuid)).exists()

    def clear(self, server_uuid: str) -> None:
        (self._directory / checked_uuid(server_uuid)).unlink(missing_ok=True)

    def all(self) -> tuple[str, ...]:
        """Uuids of all half-built guests."""
        return tuple(path.name for path in self._directory.iterdir() if not path.name.startswith("."))
