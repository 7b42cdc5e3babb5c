"""Fake disks kept as small real files."""

from __future__ import annotations

import os
from pathlib import Path

from nova import errors
from nova.model.orders import Snapshot, SnapshotOrder
from nova.virt.fake.base import FakeBase, file_name, knobbed

BLOCK = 4096
GIB = 1 << 30


class FakeSnapshots(FakeBase):
    @knobbed
    def take_snapshot(self, order: SnapshotOrder) -> Snapshot:
        path, guest = self._snapshot(order.server_uuid, order.image_id), self._store.find(order.server_uuid)
        if guest is None or "root" not in guest.disks:
            raise errors.guest.NoDisks(uuid=order.server_uuid, names="all")
        if not path.exists():
            text = f"fake root disk of {guest.uuid}\n{guest.marks.get('root', '')}\n".encode()
            fresh = path.with_suffix(".new")
            fresh.write_bytes(text + bytes(-len(text) % BLOCK))
            os.replace(fresh, path)
        size = path.stat().st_size
        return Snapshot(format="raw", size_bytes=size, virtual_size_bytes=guest.sizes.get("root", 0) * GIB or size)

    def snapshot_path(self, server_uuid: str, image_id: str) -> str | None:
        path = self._snapshot(server_uuid, image_id)
        return str(path) if path.exists() else None

    @knobbed
    def drop_snapshot(self, server_uuid: str, image_id: str) -> None:
        self._snapshot(server_uuid, image_id).unlink(missing_ok=True)

    def _snapshot(self, server_uuid: str, image_id: str) -> Path:
        return self._folder("snapshots") / f"{file_name(server_uuid)}.{file_name(image_id)}"
